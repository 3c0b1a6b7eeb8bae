// Package authenticator is a passkey in software, for tests: it makes discoverable
// credentials and signs with them (WebAuthn, level 3), and what it says can be made wrong.
package authenticator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"porchlight/test/programs"
)

// Flags of an authenticator's data (section 6.1).
const (
	present, verified, attested = 0x01, 0x04, 0x40
	backupEligible              = 0x08
)

// Passkey is a credential with its private key, and the browser it is used in.
type Passkey struct {
	ID     []byte
	Handle string // of whose it is
	// Origin and RPID are what it is used at. Count rises with each use unless it is 0;
	// Unverified leaves out that somebody proved who they are, and Synced says that it may
	// be kept elsewhere.
	Origin, RPID       string
	Count              uint32
	Unverified, Synced bool

	key *ecdsa.PrivateKey
}

// New is a passkey that nobody has been told of.
func New(t testing.TB, origin, rpID string) *Passkey {
	t.Helper()
	p := &Passkey{ID: make([]byte, 32), Origin: origin, RPID: rpID, key: programs.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
	rand.Read(p.ID)
	return p
}

// options are what a server asks of a browser.
type options struct {
	PublicKey struct {
		Challenge string `json:"challenge"`
		User      struct {
			ID string `json:"id"`
		} `json:"user"`
	} `json:"publicKey"`
}

// read reads the options, which are JSON or become it.
func read(t testing.TB, given any) (out options) {
	t.Helper()
	raw, ok := given.([]byte)
	if !ok {
		raw = programs.Got(json.Marshal(given))(t)
	}
	programs.Must(t, json.Unmarshal(raw, &out))
	return out
}

// Make answers options of a registration (RegistrationResponseJSON).
func (p *Passkey) Make(t testing.TB, given any) []byte {
	t.Helper()
	o := read(t, given)
	p.Handle = string(programs.Got(base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID))(t))
	point := programs.Got(p.key.PublicKey.Bytes())(t) // 4, x, y
	data := p.data(attested)
	data = append(data, make([]byte, 16)...) // AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(p.ID)))
	data = append(data, p.ID...)
	// COSE_Key {1: 2, 3: -7, -1: 1, -2: x, -3: y}
	data = append(data, 0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20)
	data = append(data, point[1:33]...)
	data = append(data, 0x22, 0x58, 0x20)
	data = append(data, point[33:]...)
	// {"fmt": "none", "attStmt": {}, "authData": data}
	object := append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"), byte(len(data)>>8), byte(len(data)))
	return p.answer(t, map[string]any{
		"clientDataJSON": encoded(p.client(t, "webauthn.create", o)), "attestationObject": encoded(append(object, data...)),
	})
}

// Use answers options of a sign-in (AuthenticationResponseJSON).
func (p *Passkey) Use(t testing.TB, given any) []byte {
	t.Helper()
	if p.Count > 0 {
		p.Count++
	}
	client, data := p.client(t, "webauthn.get", read(t, given)), p.data(0)
	hashed := sha256.Sum256(client)
	signed := sha256.Sum256(append(append([]byte{}, data...), hashed[:]...))
	return p.answer(t, map[string]any{
		"clientDataJSON": encoded(client), "authenticatorData": encoded(data), "userHandle": encoded([]byte(p.Handle)),
		"signature": encoded(programs.Got(ecdsa.SignASN1(rand.Reader, p.key, signed[:]))(t)),
	})
}

func (p *Passkey) data(flags byte) []byte {
	flags |= present
	if !p.Unverified {
		flags |= verified
	}
	if p.Synced {
		flags |= backupEligible
	}
	rp := sha256.Sum256([]byte(p.RPID))
	return binary.BigEndian.AppendUint32(append(rp[:], flags), p.Count)
}

func (p *Passkey) client(t testing.TB, kind string, o options) []byte {
	t.Helper()
	return programs.Got(json.Marshal(map[string]any{"type": kind, "challenge": o.PublicKey.Challenge, "origin": p.Origin, "crossOrigin": false}))(t)
}

func (p *Passkey) answer(t testing.TB, response any) []byte {
	t.Helper()
	return programs.Got(json.Marshal(map[string]any{
		"id": encoded(p.ID), "rawId": encoded(p.ID), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{},
	}))(t)
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
