package senders

import (
	"encoding/base64"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/agentapi"
)

const (
	maxTarget = 1000 // bytes of a path with its query
	maxHeader = 60   // of the name of a field
	minSecret = 8    // bytes of a key
	maxSecret = 512
)

// checkTarget refuses what no request's target is, or what is ours or could be read in two ways.
func checkTarget(target string) error {
	wrong := agentapi.Errorf(agentapi.CodeInvalid, "A path begins with / and is written as the sender writes it, like /hooks/push or /hooks?from=shop.")
	u, err := url.ParseRequestURI(target)
	if err != nil || len(target) > maxTarget || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || strings.ContainsAny(target, "#\\") {
		return wrong
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] >= 0x7f {
			return wrong
		}
	}
	if clean := path.Clean(u.Path); clean != u.Path && clean+"/" != u.Path || ours(u.Path) {
		return wrong
	}
	return nil
}

// ours says whether a path is one that an app never gets.
func ours(path string) bool {
	return path == "/.porchlight" || strings.HasPrefix(path, "/.porchlight/")
}

// otherNames are further names of kinds.
var otherNames = map[string]string{
	"standard": agentapi.SenderStandard, "standardwebhooks": agentapi.SenderStandard, "svix": agentapi.SenderStandard,
	"hmac": agentapi.SenderHMAC, "hmacsha256": agentapi.SenderHMAC,
}

// notForSignature are fields that mean something else, or never get to where it is read.
var notForSignature = []string{
	"Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Keep-Alive",
	"Cookie", "Authorization", "Proxy-Authorization", "Proxy-Connection", "Origin", "User-Agent", "Accept", "X-Porchlight-Key",
}

// checkKind returns a kind and the field of its signature as they are kept; the field is
// empty for all kinds that have their own.
func checkKind(kind, header string) (string, string, error) {
	kind = strings.ToLower(strings.TrimSpace(kind))
	if other, ok := otherNames[kind]; ok {
		kind = other
	}
	if !slices.Contains(agentapi.SenderKinds(), kind) {
		return "", "", agentapi.Errorf(agentapi.CodeInvalid, "The kind of a sender is one of %s.", strings.Join(agentapi.SenderKinds(), ", "))
	}
	header = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(header))
	switch {
	case kind != agentapi.SenderHMAC && header != "":
		return "", "", agentapi.Errorf(agentapi.CodeInvalid, "Only %s takes a header: the other kinds have their own.", agentapi.SenderHMAC)
	case kind != agentapi.SenderHMAC:
		return kind, "", nil
	case header == "":
		return "", "", agentapi.Errorf(agentapi.CodeInvalid, "%s needs the header in which the sender puts its signature, like X-Signature.", agentapi.SenderHMAC)
	case len(header) > maxHeader, !httpguts.ValidHeaderFieldName(header), slices.Contains(notForSignature, header),
		strings.HasPrefix(header, "X-Service-"), strings.HasPrefix(header, "X-Forwarded-"), strings.HasPrefix(header, "Sec-"):
		return "", "", agentapi.Errorf(agentapi.CodeInvalid, "The header %q cannot have a signature.", header)
	}
	return kind, header, nil
}

// checkSecret is the key that a secret is, as it is given to whoever signs with it.
func checkSecret(kind, secret string) ([]byte, error) {
	key := []byte(strings.TrimRight(secret, "\r\n"))
	if kind == agentapi.SenderStandard {
		encoded, _ := strings.CutPrefix(strings.TrimSpace(string(key)), "whsec_")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, agentapi.Errorf(agentapi.CodeInvalid, "A secret of this kind is base64, mostly after whsec_.")
		}
		key = raw
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return nil, agentapi.Errorf(agentapi.CodeInvalid, "A secret has %d to %d bytes. A good one is random, as openssl rand -hex 32 makes it.", minSecret, maxSecret)
	}
	return key, nil
}
