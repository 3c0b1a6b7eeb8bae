// Package trust puts the local certificate authority where the browsers of this
// computer look, and takes it out again. Only the owner's own stores are
// touched, so nobody is asked for a password that belongs to an administrator
// (macOS asks for the owner's own).
//
// The authority is name-constrained to localhost and its root key is gone: what
// trusts it trusts names of this computer, and nothing else.
package trust

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"

	"porchlight/internal/words"
)

// MissingError is returned where the program is not installed by which the
// stores of browsers are read and changed.
type MissingError struct {
	Program string // like certutil
	// Install is the command that installs it here; empty where this computer's
	// way of installing programs is not one we know.
	Install string
}

func (e *MissingError) Error() string { return e.Unwrap().Error() }

// Unwrap is the same as a sentence that can be said in another language.
func (e *MissingError) Unwrap() error {
	if e.Install == "" {
		return words.Errorf("the program %s, which tells browsers here what to trust, is not installed: install the package that has it (libnss3-tools or nss-tools)", e.Program)
	}
	return words.Errorf("the program %s, which tells browsers here what to trust, is not installed: '%s' installs it", e.Program, e.Install)
}

// Authority is a root certificate in a file (PEM).
type Authority struct {
	Path string
	cert *x509.Certificate
}

// Open reads the certificate of a file.
func Open(path string) (*Authority, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, words.Errorf("read this computer's authority: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, words.Errorf("%s holds no certificate", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, words.Errorf("%s holds no certificate: %w", path, err)
	}
	return &Authority{Path: path, cert: cert}, nil
}

// Trusted says whether every store of the owner's that browsers use has the
// certificate. A store that appears later, a new browser's, makes it false
// again.
func (a *Authority) Trusted(ctx context.Context) (bool, error) { return a.trusted(ctx) }

// Trust adds the certificate to all of them.
func (a *Authority) Trust(ctx context.Context) error { return a.trust(ctx) }

// Distrust takes it out of all of them.
func (a *Authority) Distrust(ctx context.Context) error { return a.distrust(ctx) }
