package host

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"porchlight/agent/certs"
	"porchlight/agent/local"
	"porchlight/internal/localca"
)

// Authorities are the certificate authorities a data directory relies on besides
// those of the system.
type Authorities struct {
	// Control verifies the control plane; nil is the system's own authorities.
	Control *x509.CertPool
	// Root is the file (PEM) with the root of the certificates this computer
	// makes for itself, which browsers have to trust; empty where an authority
	// issues them. The file need not be there yet.
	Root string
	// Account is the address of this computer's account at the authority that
	// issues its certificates; empty where none does, or none has yet.
	Account string
}

// AuthoritiesOf reads what is kept in dataDir; whether an agent runs there does
// not matter.
func AuthoritiesOf(dataDir string) (Authorities, error) {
	kept, err := openConnection(filepath.Join(dataDir, connectionName))
	if err != nil {
		return Authorities{}, err
	}
	c := kept.get().Current
	if c == nil {
		root := local.RootCAPath(dataDir)
		raw, err := readBounded(root)
		if errors.Is(err, fs.ErrNotExist) {
			return Authorities{Root: root}, nil
		}
		if err != nil {
			return Authorities{}, fmt.Errorf("cannot read this computer's certificate authority: %w", err)
		}
		pool, err := rootsOf(string(raw))
		if err != nil {
			return Authorities{}, errors.New("the certificate authority of this computer is damaged: starting Porchlight again makes a new one")
		}
		return Authorities{Control: pool, Root: root}, nil
	}
	pool, err := rootsOf(c.CA)
	if err != nil {
		return Authorities{}, err
	}
	a := Authorities{Control: pool}
	if ownCertificates(c.CA, c.ACMEDirectory) {
		a.Root = filepath.Join(dataDir, ownCADir, localca.RootFile)
	} else {
		a.Account = certs.AccountURL(filepath.Join(dataDir, acmeDir), c.ACMEDirectory)
	}
	return a, nil
}
