package control

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"regexp"
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
	purposeAssertion  = "client assertion"
	purposeVisit      = "visitor code"
	purposeBudget     = "budget"
	purposeDoor       = "knock"
	purposeKnown      = "known browser"
	purposeFamiliar   = "familiar network"
	purposePasskey    = "passkey"
	purposeChallenge  = "passkey challenge"
	purposeLogin      = "login"
	purposeLogout     = "logout token"
	purposeOperator   = "operator session"

	purposeLoginSession = "login session"

	purposeRecovery     = "recovery codes of"
	purposeRecoveryCode = "recovery code"
	purposeStop         = "stops a recovery"

	purposeDocument = "client document"

	purposeAdminToken   = "admin token"
	purposePasswordForm = "app password form"
)

// hashOf is how secrets are stored and looked up: a plain hash suffices, because a
// list of parts with a secret in it holds at least 128 random bits, and with a recovery
// code 80 beside the address. What is no secret
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

var (
	s256Pattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	// verifierPattern is that of RFC 7636, section 4.1.
	verifierPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
)

// ValidChallenge says whether a code challenge has the form of S256.
func ValidChallenge(challenge string) bool { return s256Pattern.MatchString(challenge) }

// proves says whether a challenge was made of this verifier (RFC 7636, section
// 4.6).
func proves(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	made := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(made), []byte(challenge)) == 1
}
