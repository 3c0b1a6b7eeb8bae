package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"porchlight/agent/certs"
	"porchlight/agent/doctor"
	"porchlight/agent/local"
	"porchlight/internal/localca"
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
			return doctor.Authorities{}, fmt.Errorf("cannot read this computer's certificate authority: %w", err)
		}
		pool, err := rootsOf(string(raw))
		if err != nil {
			return doctor.Authorities{}, errors.New("the certificate authority of this computer is damaged: starting Porchlight again makes a new one")
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
