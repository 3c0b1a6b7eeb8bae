package control

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"regexp"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	josejwt "github.com/go-jose/go-jose/v4/jwt"

	"porchlight/control/controlapi"
)

// A client whose document says private_key_jwt has no secret: with each request it sends a
// token that it signed, its assertion (RFC 7521 and RFC 7523), and the keys that verify it
// are those its document names. Nothing in the assertion itself says which key to believe,
// where to get one, or how to read it.

const (
	maxAssertion     = 8 << 10 // bytes
	maxAssertionID   = 256     // bytes of jti
	maxClientKeys    = 20
	maxClientKeySet  = 64 << 10 // bytes
	minRSA           = 2048     // bits; go-jose takes none beyond 4,096
	assertionLife    = 5 * time.Minute
	assertionsDiffer = 30 * time.Second // by how much a client's clock may differ from ours

)

// AssertionType is the one kind of client_assertion_type there is (RFC 7523, section 2.2).
const AssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// AssertionAlgorithms are what an assertion may be signed by: never none, and nothing whose
// key is a secret, which a public key could be taken for (RFC 8725, section 3.1).
var AssertionAlgorithms = []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.PS256, jose.RS256, jose.EdDSA}

// errUnknownKey is of an assertion whose key is not among those that are known.
var errUnknownKey = badAssertion("The key of this client_assertion is not among those of the client's document, or does not fit its alg.")

func badAssertion(why string) error { return refuse(controlapi.CodeInvalidClient, why) }

// clientKeys reads a set of keys (RFC 7517) that somebody else publishes. Those of kinds that
// are not known are left out, and those that are not to verify signatures.
func clientKeys(set []byte) ([]jose.JSONWebKey, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if len(set) > maxClientKeySet {
		return nil, badAssertion("The client publishes more keys than are read.")
	}
	if err := json.Unmarshal(set, &raw); err != nil || len(raw.Keys) > maxClientKeys {
		return nil, badAssertion("The client's keys are no key set, or are more than 20.")
	}
	var keys []jose.JSONWebKey
	for _, one := range raw.Keys {
		var key jose.JSONWebKey
		var may struct {
			Operations []string        `json:"key_ops"`
			Private    json.RawMessage `json:"d"` // takes long to read, and verifies nothing
		}
		if json.Unmarshal(one, &may) != nil || may.Private != nil || json.Unmarshal(one, &key) != nil {
			continue
		}
		if (key.Use == "" || key.Use == "sig") && (may.Operations == nil || slices.Contains(may.Operations, "verify")) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// fits says whether a key is a public one for this algorithm.
func fits(key jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(alg) {
		return false
	}
	switch public := key.Key.(type) {
	case *ecdsa.PublicKey:
		return alg == jose.ES256 && public.Curve == elliptic.P256() || alg == jose.ES384 && public.Curve == elliptic.P384()
	case *rsa.PublicKey:
		return (alg == jose.RS256 || alg == jose.PS256) && public.N.BitLen() >= minRSA
	case ed25519.PublicKey:
		return alg == jose.EdDSA
	}
	return false
}

// assertion is what a client sent, well formed, of which nothing is believed before check
// and signedBy.
type assertion struct {
	josejwt.Claims
	jws *jose.JSONWebSignature
}

// assertionPattern is a JWS in its one spelling: where base64 is decoded lines count for nothing.
var assertionPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// parseAssertion reads an assertion by rules of JSON that leave nothing to be read in two
// ways: no name twice, and none in other letters.
func parseAssertion(raw string) (assertion, error) {
	if len(raw) > maxAssertion {
		return assertion{}, badAssertion("The client_assertion is too long.")
	}
	var a assertion
	var err error
	if a.jws, err = jose.ParseSignedCompact(raw, AssertionAlgorithms); err != nil || !assertionPattern.MatchString(raw) {
		return assertion{}, badAssertion("The client_assertion is no JWT, or not signed by ES256, ES384, PS256, RS256 or EdDSA.")
	}
	head := a.jws.Signatures[0].Protected
	if typ, there := head.ExtraHeaders[jose.HeaderType]; there && typ != "JWT" && typ != "client-authentication+jwt" {
		return assertion{}, badAssertion("The typ of the client_assertion is neither JWT nor client-authentication+jwt: it is a token for something else.")
	}
	if json.Unmarshal(a.jws.UnsafePayloadWithoutVerification(), &a.Claims) != nil {
		return assertion{}, badAssertion("The claims of the client_assertion cannot be read, or one is there twice.")
	}
	return a, nil
}

// check says what is wrong with the claims of an assertion (RFC 7523, section 3). Whom it
// is for is told by nothing but our own addresses: one that names others, too, is good
// there as well.
func (a assertion) check(clientID string, audience []string, now time.Time) error {
	foreign := func(to string) bool { return !slices.Contains(audience, to) }
	why := ""
	switch {
	case a.Issuer != clientID || a.Subject != clientID:
		why = "iss and sub of the client_assertion must both be the client_id."
	case len(a.Audience) == 0 || slices.ContainsFunc(a.Audience, foreign):
		why = "aud of the client_assertion must be the issuer or the token endpoint of this server, and nobody else."
	case a.Expiry.Time().Before(now.Add(-assertionsDiffer)): // also without one
		why = "The client_assertion has expired, or has no exp."
	case a.Expiry.Time().After(now.Add(assertionLife + assertionsDiffer)):
		why = "exp of the client_assertion is more than 5 minutes ahead."
	case a.NotBefore != nil && a.NotBefore.Time().After(now.Add(assertionsDiffer)):
		why = "nbf of the client_assertion is still to come."
	case a.IssuedAt != nil && a.IssuedAt.Time().After(now.Add(assertionsDiffer)):
		why = "iat of the client_assertion is still to come."
	case a.IssuedAt != nil && a.IssuedAt.Time().Before(now.Add(-assertionLife-assertionsDiffer)):
		why = "The client_assertion was made more than 5 minutes ago."
	case a.ID == "" || len(a.ID) > maxAssertionID:
		why = "The client_assertion needs a jti of 1 to 256 bytes."
	default:
		return nil
	}
	return badAssertion(why)
}

// signedBy refuses what none of these keys signed, with errUnknownKey where none of them is
// the one. Of several that could be it none is tried: one request costs one signature.
func (a assertion) signedBy(keys []jose.JSONWebKey) error {
	head := a.jws.Signatures[0].Protected
	var fitting []jose.JSONWebKey
	for _, key := range keys {
		if (head.KeyID == "" || head.KeyID == key.KeyID) && fits(key, jose.SignatureAlgorithm(head.Algorithm)) {
			fitting = append(fitting, key)
		}
	}
	switch {
	case len(fitting) == 0:
		return errUnknownKey
	case len(fitting) > 1:
		return badAssertion("Several of the client's keys could be that of the client_assertion. Name one by a kid of its own.")
	}
	if _, err := a.jws.Verify(fitting[0]); err != nil {
		return badAssertion("The signature of the client_assertion is not right.")
	}
	return nil
}
