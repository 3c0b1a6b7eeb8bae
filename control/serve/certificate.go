package serve

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"porchlight/control/archive"
	"porchlight/internal/localca"
)

// lookEvery is how often, at most, a handshake looks whether the certificate is
// to be replaced.
const lookEvery = time.Minute

// certificate is that of the auth host, replaced while it serves.
type certificate struct {
	host string
	now  func() time.Time
	log  *slog.Logger
	// next returns the certificate to use now: current, or one that replaces it.
	next func(current *tls.Certificate) (*tls.Certificate, error)

	mu      sync.Mutex // protects what follows
	current *tls.Certificate
	lookAt  time.Time
}

// fromAuthority has a certificate issued, and anew when two thirds of its life
// are over.
func fromAuthority(ca *localca.CA, host string, log *slog.Logger) (*certificate, error) {
	c := &certificate{host: host, now: time.Now, log: log}
	c.next = func(current *tls.Certificate) (*tls.Certificate, error) {
		if current != nil {
			life := current.Leaf.NotAfter.Sub(current.Leaf.NotBefore)
			if c.now().Before(current.Leaf.NotAfter.Add(-life / 3)) {
				return current, nil
			}
		}
		return ca.Issue(host)
	}
	return c, c.first()
}

// fromFiles reads PEM files, and again when they have changed: whoever renews
// the certificate need not tell us.
func fromFiles(certFile, keyFile, host string, log *slog.Logger) (*certificate, error) {
	c := &certificate{host: host, now: time.Now, log: log}
	var cert, key []byte
	c.next = func(current *tls.Certificate) (*tls.Certificate, error) {
		newCert, err := os.ReadFile(certFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate: %w", err)
		}
		newKey, err := os.ReadFile(keyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate's key: %w", err)
		}
		if current != nil && bytes.Equal(newCert, cert) && bytes.Equal(newKey, key) {
			return current, nil
		}
		pair, err := tls.X509KeyPair(newCert, newKey)
		if err != nil {
			return nil, fmt.Errorf("%s and %s do not make a certificate: %w", certFile, keyFile, err)
		}
		if err := pair.Leaf.VerifyHostname(host); err != nil {
			return nil, fmt.Errorf("%s is not for the host of the control plane: %w", certFile, err)
		}
		cert, key = newCert, newKey
		return &pair, nil
	}
	return c, c.first()
}

// first fails where the control plane could not be reached from the start.
func (c *certificate) first() (err error) {
	if c.current, err = c.next(nil); err != nil {
		return err
	}
	if c.now().After(c.current.Leaf.NotAfter) {
		return fmt.Errorf("the certificate of %s expired on %s", c.host, c.current.Leaf.NotAfter.Format(time.DateOnly))
	}
	c.lookAt = c.now().Add(lookEvery)
	return nil
}

// get is for tls.Config. What cannot be replaced goes on serving.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.lookAt) {
		return c.current, nil
	}
	c.lookAt = c.now().Add(lookEvery)
	next, err := c.next(c.current)
	switch {
	case err != nil:
		c.log.Error("the certificate could not be renewed; the old one still serves", "until", c.current.Leaf.NotAfter, "err", err)
	case next != c.current:
		c.current = next
		c.log.Info("the certificate was renewed", "until", next.Leaf.NotAfter)
	}
	return c.current, nil
}

// ends is when the certificate in use ends.
func (c *certificate) ends() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Leaf.NotAfter
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// CADir is where a data directory has its certificate authority.
func CADir(dataDir string) string { return filepath.Join(dataDir, "ca") }

// caFiles are the files of an authority that belong into a backup.
var caFiles = []string{localca.RootFile, localca.IntermediateFile, localca.IntermediateKeyFile}

// CAFiles reads the authority of a data directory, if there is one, for a
// backup.
func CAFiles(dataDir string) func() ([]archive.File, error) {
	return func() ([]archive.File, error) {
		if dataDir == "" {
			return nil, nil
		}
		var files []archive.File
		for _, name := range caFiles {
			data, err := os.ReadFile(filepath.Join(CADir(dataDir), name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read the certificate authority: %w", err)
			}
			files = append(files, archive.File{Name: name, Data: data})
		}
		return files, nil
	}
}
