// Package clientdoc reads how OAuth clients describe themselves: a client_id that is an
// https URL names a JSON document, the Client ID Metadata Document
// (draft-ietf-oauth-client-id-metadata-document). It says which ids there can be, fetches
// what is there from the internet alone, and reads it strictly.
//
// It decides nothing of whom to ask: only ids of hosts that the operator allows may get
// here, and only for a person who is signed in. It keeps nothing.
package clientdoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/control/controlapi"
)

const (
	maxID        = 256 // bytes; it is in each access token
	maxName      = 80  // characters
	maxRedirects = 50
)

// How a client authenticates at the token endpoint. There is no way to share a secret.
const (
	AuthNone          = "none"
	AuthPrivateKeyJWT = "private_key_jwt"
)

// Document is what a client says of itself.
type Document struct {
	ID           string // its own address
	Name         string // as it claims; the host where it claims none
	RedirectURIs []string
	AuthMethod   string // AuthNone or AuthPrivateKeyJWT, which has one of the following
	JWKS         json.RawMessage
	JWKSURI      string // https, at the host of ID
}

// idPattern is an id in the one spelling that is taken: nothing in it is left for two
// readers to read in two ways. The path has more than its first slash.
var idPattern = regexp.MustCompile(`^https://([a-z0-9.-]+)(/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+)$`)

// HostOf is the host of a client_id that may be the address of a document, or "". It has
// no port, query, fragment, user name or dot segment.
func HostOf(id string) string {
	m := idPattern.FindStringSubmatch(id)
	if m == nil || len(id) > maxID || !controlapi.ValidClientHost(m[1]) {
		return ""
	}
	path, err := url.PathUnescape(m[2])
	if err != nil || !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return ""
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return ""
		}
	}
	return m[1]
}

// Read reads the document of an id for which HostOf has a host. The error says what is
// wrong with it, for the client's author.
func Read(id string, body []byte) (Document, error) {
	members, err := object(body)
	if err != nil {
		return Document{}, err
	}
	d := Document{JWKS: members["jwks"]}
	var name, method string
	var methods []string
	for member, into := range map[string]any{
		"client_id": &d.ID, "client_name": &name, "redirect_uris": &d.RedirectURIs, "jwks_uri": &d.JWKSURI,
		"token_endpoint_auth_method": &method, "token_endpoint_auth_methods_supported": &methods,
	} {
		if raw, there := members[member]; there && json.Unmarshal(raw, into) != nil {
			return Document{}, fmt.Errorf("its %s is of another type", member)
		}
	}
	switch {
	case d.ID != id:
		return Document{}, errors.New("its client_id is not letter by letter the address it is at")
	case members["client_secret"] != nil:
		return Document{}, errors.New("it has a client_secret, which everybody could read")
	case len(d.RedirectURIs) == 0 || len(d.RedirectURIs) > maxRedirects:
		return Document{}, fmt.Errorf("it has no redirect_uris, or more than %d", maxRedirects)
	}
	if d.Name, err = nameOf(name, HostOf(id)); err != nil {
		return Document{}, err
	}
	return d, d.chooseAuth(method, methods)
}

// object reads one JSON object whose members have names of one spelling each:
// encoding/json alone would take Client_ID for client_id, and the last of two.
func object(body []byte) (map[string]json.RawMessage, error) {
	wrong := errors.New("it is not one JSON object that names each member once")
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') || !utf8.Valid(body) || !json.Valid(body) {
		return nil, wrong
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		_, twice := members[name.(string)]
		if err := d.Decode(&value); err != nil || twice {
			return nil, wrong
		}
		members[name.(string)] = value
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return members, nil
}

func nameOf(claimed, host string) (string, error) {
	switch name := strings.TrimSpace(claimed); {
	case name == "":
		return host, nil
	case utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", fmt.Errorf("its client_name is longer than %d characters, or has some that cannot be seen", maxName)
	default:
		return name, nil
	}
}

// chooseAuth finds the strongest method that the client can do and that is known here. Some
// name one, some several (OpenID Connect Relying Party Metadata Choices), some none.
func (d *Document) chooseAuth(method string, methods []string) error {
	if method == "" && len(methods) == 0 {
		method = AuthNone
	}
	methods = append(methods, method)
	withKeys := slices.Contains(methods, AuthPrivateKeyJWT)
	switch {
	case withKeys && (d.JWKS != nil) == (d.JWKSURI != ""):
		return errors.New("private_key_jwt needs either jwks or jwks_uri")
	case d.JWKSURI != "" && HostOf(d.JWKSURI) != HostOf(d.ID):
		return errors.New("its jwks_uri is not an https address of the same host, without a query")
	case withKeys:
		d.AuthMethod = AuthPrivateKeyJWT
	case slices.Contains(methods, AuthNone):
		d.AuthMethod = AuthNone
	default:
		return errors.New("its token_endpoint_auth_method is neither none nor private_key_jwt")
	}
	return nil
}
