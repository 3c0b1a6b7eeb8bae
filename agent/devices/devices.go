// Package devices makes the certificates with which devices and programs open apps in one
// person's name: by an authority of this data directory that nothing else trusts, handed over
// as a PKCS #12 file (RFC 7292) under a code that is shown apart. In come a person, a name and
// apps that were chosen for them; out go file and code, once. What it keeps of a certificate is
// its digest. It decides nothing: access does, at each request.
package devices

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"software.sslmate.com/src/go-pkcs12"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/oneline"
)

const (
	// Life is how long a certificate is good.
	Life = 365 * 24 * time.Hour
	// Most is how many a computer has, and MostOfMember how many of one member.
	Most         = 200
	MostOfMember = 20
	// authorityLife outlasts whoever made it: a certificate ends by its own time, or here.
	authorityLife = 50 * 365 * 24 * time.Hour
	maxName       = 60        // characters
	early         = time.Hour // by which other clocks may be behind
)

// Devices is safe for concurrent use.
type Devices struct {
	access *access.Access
	store  *store.Store
	now    func() time.Time
	links  links

	mu        sync.Mutex
	authority *authority // nil until it is needed; guarded by mu
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool // of it alone
}

// New reads nothing yet, and makes nothing.
func New(a *access.Access, s *store.Store, now func() time.Time) *Devices {
	if now == nil {
		now = time.Now
	}
	return &Devices{access: a, store: s, now: now, links: newLinks()}
}

// Wanted is what a certificate is to be.
type Wanted struct {
	Name string   // to tell it from others, and what a browser shows
	Apps []string // ids, at least one
	// Old has the file be one that programs of before 2020 read, too.
	Old bool
}

// Made is a new certificate, this once.
type Made struct {
	ID   string
	Code string // opens File
	File []byte // PKCS #12
	Ends time.Time
}

// Make makes a certificate for a person, as their row is. It refuses with CodeInvalid a name
// that will not do, and with CodeConflict one too many.
func (d *Devices) Make(who controlapi.Person, w Wanted) (Made, error) {
	name, err := oneline.Line(w.Name)
	switch {
	case err != nil:
		return Made{}, agentapi.Errorf(agentapi.CodeInvalid, "%s", err)
	case name == "" || utf8.RuneCountInString(name) > maxName:
		return Made{}, agentapi.Errorf(agentapi.CodeInvalid, "Give the device a name of 1 to 60 visible characters, so that you know later which one it is.")
	case len(w.Apps) == 0:
		return Made{}, agentapi.Errorf(agentapi.CodeInvalid, "Choose at least one app for the device.")
	case who.Role != controlapi.RoleOwner && who.Since.IsZero():
		return Made{}, agentapi.Errorf(agentapi.CodeConflict, "The server is too old for that. Whoever runs it has to update it.")
	}
	if err := fits(d.access.Devices(), who); err != nil { // before the work of one
		return Made{}, err
	}
	ca, err := d.open(true)
	if err != nil {
		return Made{}, err
	}
	now := d.now()
	key, raw, err := ca.issue(name, now)
	if err != nil {
		return Made{}, fmt.Errorf("make a device's certificate: %w", err)
	}
	made := Made{ID: strings.ToLower(rand.Text()), Code: newCode(), Ends: now.Add(Life).UTC().Truncate(time.Second)}
	if made.File, err = pack(key, raw, made.Code, w.Old); err != nil {
		return Made{}, fmt.Errorf("pack a device's certificate: %w", err)
	}
	digest := sha256.Sum256(raw)
	row := store.Device{
		ID: made.ID, AccountID: who.AccountID, Name: name, Apps: slices.Clone(w.Apps), Digest: digest[:],
		CreatedAt: now.UTC().Truncate(time.Second), NotAfter: made.Ends,
	}
	if who.Role != controlapi.RoleOwner {
		row.Since = who.Since
	}
	if err := d.access.AddDevice(row, func(others []store.Device) error { return fits(others, who) }); err != nil {
		return Made{}, err
	}
	return made, nil
}

// fits says whether there is room for one more of a person.
func fits(others []store.Device, who controlapi.Person) error {
	theirs := 0
	for _, d := range others {
		if d.AccountID == who.AccountID {
			theirs++
		}
	}
	switch {
	case len(others) >= Most:
		return agentapi.Errorf(agentapi.CodeConflict, "This computer has %d devices, which is as many as it can have. Revoke one first.", Most)
	case who.Role != controlapi.RoleOwner && theirs >= MostOfMember:
		return agentapi.Errorf(agentapi.CodeConflict, "You have %d devices, which is as many as you can have. Revoke one first.", MostOfMember)
	}
	return nil
}

// newCode has 100 bits.
func newCode() string {
	text := strings.ToLower(rand.Text())
	return text[:5] + "-" + text[5:10] + "-" + text[10:15] + "-" + text[15:20]
}

func pack(key *ecdsa.PrivateKey, certificate []byte, code string, old bool) ([]byte, error) {
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	encoder := pkcs12.Modern
	if old {
		encoder = pkcs12.Legacy
	}
	// Without the authority: whoever imports the file is not to trust it for anything.
	return encoder.Encode(key, leaf, nil, code)
}

// Authority is who signed the certificates of an app, for visitors to be asked for theirs;
// nil where there are none.
func (d *Devices) Authority(appID string) *x509.CertPool {
	if !d.access.HasDevices(appID) {
		return nil
	}
	ca, err := d.open(false)
	if err != nil || ca == nil {
		return nil // none can be told to be ours: whoever has one signs in
	}
	return ca.pool
}

// open reads the authority, and makes it where there is none yet, if it may.
func (d *Devices) open(make bool) (*authority, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.authority != nil {
		return d.authority, nil
	}
	kept, ok, err := d.store.DeviceAuthority()
	switch {
	case err != nil || !ok && !make:
		return nil, err
	case !ok:
		if kept, err = newAuthority(d.now()); err == nil {
			err = d.store.SaveDeviceAuthority(kept)
		}
		if err != nil {
			return nil, fmt.Errorf("keep the authority for certificates of devices: %w", err)
		}
	}
	d.authority, err = readAuthority(kept)
	return d.authority, err
}

// newAuthority is one whose name tells it from those of other computers, and nothing else.
func newAuthority(now time.Time) (store.DeviceAuthority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return store.DeviceAuthority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "Porchlight devices " + strings.ToLower(rand.Text()[:10])},
		NotBefore: now.Add(-early), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return store.DeviceAuthority{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return store.DeviceAuthority{Certificate: raw, Key: private}, err
}

func readAuthority(kept store.DeviceAuthority) (*authority, error) {
	certificate, err := x509.ParseCertificate(kept.Certificate)
	key, unread := x509.ParsePKCS8PrivateKey(kept.Key)
	private, ours := key.(*ecdsa.PrivateKey)
	if err := errors.Join(err, unread); err != nil || !ours || !private.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.Join(errors.New("the stored authority for certificates of devices is damaged"), err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &authority{certificate, private, pool}, nil
}

// issue makes a key and its certificate, in DER: it says what the device is called, and
// nothing of its person or apps.
func (ca *authority) issue(name string, now time.Time) (key *ecdsa.PrivateKey, raw []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	raw, err = x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-early), NotAfter: now.Add(Life),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.certificate, key.Public(), ca.key)
	return key, raw, err
}

func newSerial() *big.Int {
	var raw [16]byte
	rand.Read(raw[:])
	raw[0] &= 0x7f // positive, in as many bytes
	return new(big.Int).SetBytes(raw[:])
}
