// Package update says that a newer version of Porchlight is there. It asks one address,
// which the owner, or else the server's operator, named together with the key that signs
// there, once a day over HTTPS, and keeps what a manifest said that was signed by that
// key, is newer than the last one and has not expired.
//
// It never downloads, installs or opens anything, sends nothing that tells one computer
// from another, and asks nobody before an address is named: none is built in.
package update

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"porchlight/internal/words"
)

// Manifest is what a publisher says about the newest version.
type Manifest struct {
	Product string    `json:"product"` // product
	Version string    `json:"version"` // as in 1.2.3
	Date    time.Time `json:"date"`    // when it was signed; a later one replaces it
	Expires time.Time `json:"expires"` // when it says nothing any more
}

// product is what a manifest has to be about.
const product = "porchlight"

// prefix is what is signed before a manifest, so that the signature of nothing else
// can be taken for one.
const prefix = "porchlight update manifest 1\n"

const (
	// ahead is how far in the future a manifest may be dated: clocks differ, and one
	// dated next year would shut out all until then.
	ahead = 24 * time.Hour
	// maxLife is how long a manifest may say something.
	maxLife = 366 * 24 * time.Hour
)

// signed is a manifest as it lies at its address: exactly the bytes that were signed.
type signed struct {
	Manifest  []byte `json:"manifest"`
	Signature []byte `json:"signature"`
}

// Sign makes the file of a manifest.
func Sign(m Manifest, key ed25519.PrivateKey) ([]byte, error) {
	m.Product = product
	if err := m.check(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	return json.Marshal(signed{raw, ed25519.Sign(key, append([]byte(prefix), raw...))})
}

// open reads a file of a manifest. Nothing of it is looked at before its signature is
// right.
func open(file []byte, key ed25519.PublicKey) (Manifest, error) {
	var s signed
	if json.Unmarshal(file, &s) != nil {
		return Manifest{}, words.Errorf("what is there is no signed manifest")
	}
	if !ed25519.Verify(key, append([]byte(prefix), s.Manifest...), s.Signature) {
		return Manifest{}, words.Errorf("the manifest is not signed by the key that was named")
	}
	var m Manifest
	if json.Unmarshal(s.Manifest, &m) != nil {
		return Manifest{}, words.Errorf("the manifest cannot be read")
	}
	return m, m.check()
}

// check refuses what no manifest says, whenever it is read.
func (m Manifest) check() error {
	switch {
	case m.Product != product:
		return words.Errorf("the manifest is about another program")
	case !semver.IsValid("v" + m.Version), len(m.Version) > 40:
		return words.Errorf("the manifest has no version like 1.2.3")
	case m.Date.IsZero(), !m.Expires.After(m.Date), m.Expires.Sub(m.Date) > maxLife:
		return words.Errorf("the manifest has no date, or expires before it or over a year later")
	}
	return nil
}

// stands refuses a manifest that says nothing at this time.
func (m Manifest) stands(now time.Time) error {
	switch {
	case m.Date.After(now.Add(ahead)):
		return words.Errorf("the manifest is dated in the future; is the clock of this computer right?")
	case !now.Before(m.Expires):
		return words.Errorf("the manifest has expired")
	}
	return nil
}

// newer says whether a manifest is about a later version than the one that runs. Of a
// build without a number nobody can tell.
func (m Manifest) newer(running string) bool {
	running = "v" + strings.TrimPrefix(running, "v")
	return semver.IsValid(running) && semver.Compare("v"+m.Version, running) > 0
}
