package control

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// What the sealing secret of Keys is for: values handed to browsers and given back, and
// how nodes know each other.

// sealing are the secrets that count: the first seals, all open.
func (r *keyRing) sealing(now time.Time) [][]byte {
	k := r.stored
	switch {
	case k.Former == nil || !now.Before(k.FormerUntil):
		return [][]byte{k.Sealing}
	case now.Before(k.SealsFrom):
		return [][]byte{k.Former, k.Sealing}
	}
	return [][]byte{k.Sealing, k.Former}
}

// Instance is eight characters that tell this control plane's cookies from
// those of another on the same host, as cookies ignore ports. It outlives rotations.
func (s *Keys) Instance() string { return s.keyRing.Load().instance }

// PeerSecrets are 32 bytes each that the nodes on one store share, by which their
// relays know each other: by any of them, and show themselves by the first.
func (s *Keys) PeerSecrets() ([][]byte, error) {
	var out [][]byte
	for _, secret := range s.keyRing.Load().sealing(s.now()) {
		derived, err := hkdf.Key(sha256.New, secret, nil, "porchlight peers 1", 32)
		if err != nil {
			return nil, err
		}
		out = append(out, derived)
	}
	return out, nil
}

// Seal signs text for this control plane, so that a value handed to a browser
// and given back is known to be ours, until the keys are rotated. The result is URL-
// and cookie-safe. It hides nothing.
func (s *Keys) Seal(purpose, text string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(text)) + "." +
		base64.RawURLEncoding.EncodeToString(sealed(s.keyRing.Load().sealing(s.now())[0], purpose, text))
}

// Unseal returns what Seal was given, when it was sealed here for the same
// purpose.
func (s *Keys) Unseal(purpose, value string) (string, bool) {
	body, sum, ok := strings.Cut(value, ".")
	if !ok {
		return "", false
	}
	text, err1 := base64.RawURLEncoding.DecodeString(body)
	mac, err2 := base64.RawURLEncoding.DecodeString(sum)
	if err1 != nil || err2 != nil {
		return "", false
	}
	for _, secret := range s.keyRing.Load().sealing(s.now()) {
		if hmac.Equal(mac, sealed(secret, purpose, string(text))) {
			return string(text), true
		}
	}
	return "", false
}

func sealed(secret []byte, purpose, text string) []byte {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s\n%s", purpose, text)
	return h.Sum(nil)
}

// mark is what a row has in place of text that the row is to be found by and not to show.
// It stays the same over rotations; who has the row proves nothing by it.
func (s *core) mark(purpose, text string) []byte {
	return sealed(s.keyRing.Load().marks, purpose, text)
}
