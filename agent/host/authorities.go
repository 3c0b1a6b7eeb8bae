package host

import (
	"errors"
	"io/fs"
	"path/filepath"

	"porchlight/agent/certs"
	"porchlight/agent/doctor"
	"porchlight/agent/local"
	"porchlight/agent/trust"
	"porchlight/internal/localca"
	"porchlight/internal/words"
)

// AuthoritiesOf reads what is kept in dataDir; whether an agent runs there does
// not matter.
func AuthoritiesOf(dataDir string) (doctor.Authorities, error) {
	kept, err := openConnection(filepath.Join(dataDir, connectionName))
	if err != nil {
		return doctor.Authorities{}, err
	}
	c := kept.get().Current
	if c == nil {
		root := local.RootCAPath(dataDir)
		raw, err := readBounded(root)
		if errors.Is(err, fs.ErrNotExist) {
			return doctor.Authorities{Root: root}, nil
		}
		if err != nil {
			return doctor.Authorities{}, words.Errorf("cannot read this computer's certificate authority: %w", err)
		}
		pool, err := rootsOf(string(raw))
		if err != nil {
			return doctor.Authorities{}, words.Errorf("the certificate authority of this computer is damaged: starting Porchlight again makes a new one")
		}
		return doctor.Authorities{Control: pool, Root: root}, nil
	}
	pool, err := rootsOf(c.CA)
	if err != nil {
		return doctor.Authorities{}, err
	}
	a := doctor.Authorities{Control: pool}
	if ownCertificates(c.CA, c.ACMEDirectory) {
		a.Root = filepath.Join(dataDir, ownCADir, localca.RootFile)
	} else {
		a.Account = certs.AccountURL(filepath.Join(dataDir, acmeDir), c.ACMEDirectory)
	}
	return a, nil
}

// errIssued is for a computer whose certificates come from an authority that
// browsers know.
var errIssued = words.Errorf("this computer's certificates are issued by an authority, so there is nothing of its own to trust")

// OwnAuthority is the authority of the certificates this computer makes itself.
func OwnAuthority(dataDir string) (*trust.Authority, error) {
	kept, err := AuthoritiesOf(dataDir)
	if err != nil {
		return nil, err
	}
	if kept.Root == "" {
		return nil, errIssued
	}
	authority, err := trust.Open(kept.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, words.Errorf("this computer has no certificate authority yet: starting Porchlight once, with 'porchlight agent --local', makes one")
	}
	return authority, err
}
