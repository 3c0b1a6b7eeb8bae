package control

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
)

// newID makes an opaque, stable, URL-safe identifier of at least 128 random
// bits. It has only lower-case letters and digits, so that it never looks like
// an option on a command line.
func newID() string { return strings.ToLower(rand.Text()) }

// newToken makes a secret of 256 random bits, in 43 URL-safe characters.
func newToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newCode makes the six digits of a sign-in mail.
func newCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // as newToken: without randomness nothing may go on
	}
	return fmt.Sprintf("%06d", n)
}

// The purposes keep a hash of one kind of secret from being found as another.
const (
	purposeCredential = "device credential"
	purposeLink       = "sign-in link"
	purposeBrowser    = "sign-in browser"
	purposeCode       = "sign-in code"
	purposeSession    = "session"
	purposeInvitation = "invitation"
	purposeClient     = "client secret"
	purposeAuthCode   = "authorization code"
	purposeRefresh    = "refresh token"
	purposeVisit      = "visitor code"
	purposeBudget     = "budget"
	purposeKnown      = "known browser"
)

// hashOf is how secrets are stored and looked up: a plain hash suffices because
// each part list holds at least 256 random bits. Parts are length-prefixed, so
// that no two lists run together into the same bytes.
func hashOf(purpose string, parts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", purpose)
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Seal signs text for this control plane, so that a value handed to a browser
// and given back is known to be ours. The result is URL- and cookie-safe. It
// hides nothing.
func (s *Keys) Seal(purpose, text string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." +
		base64.RawURLEncoding.EncodeToString(s.seal(purpose, text))
}

// Unseal returns what Seal was given, when it was sealed here for the same
// purpose.
func (s *Keys) Unseal(purpose, sealed string) (string, bool) {
	body, sum, ok := strings.Cut(sealed, ".")
	if !ok {
		return "", false
	}
	text, err1 := base64.RawURLEncoding.DecodeString(body)
	mac, err2 := base64.RawURLEncoding.DecodeString(sum)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, s.seal(purpose, string(text))) {
		return "", false
	}
	return string(text), true
}

func (s *core) seal(purpose, text string) []byte {
	h := hmac.New(sha256.New, s.keyRing.Load().sealing)
	fmt.Fprintf(h, "%s\n%s", purpose, text)
	return h.Sum(nil)
}
