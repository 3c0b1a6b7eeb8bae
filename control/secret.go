package control

import (
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

// tokenLen is how long newToken makes them, in bytes.
const tokenLen = 43

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
	purposeDoor       = "knock"
	purposeKnown      = "known browser"
	purposeFamiliar   = "familiar network"

	purposePasswordForm = "app password form"
)

// hashOf is how secrets are stored and looked up: a plain hash suffices, because a
// list of parts with a secret in it holds at least 128 random bits. What is no secret
// (a budget's subject, a door, an address) is hashed for a key of one length. Parts are
// length-prefixed, so that no two lists run together into the same bytes.
func hashOf(purpose string, parts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", purpose)
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
