package localca

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"porchlight/internal/durable"
	"porchlight/internal/private"
	"porchlight/internal/words"
)

// Names of the files in an authority's directory.
const (
	RootFile            = "root.pem"
	IntermediateFile    = "intermediate.pem"
	IntermediateKeyFile = "intermediate-key.pem"
)

// Types of PEM blocks.
const (
	typeCertificate = "CERTIFICATE"
	typeKey         = "PRIVATE KEY"
)

// maxFile bounds what is read of a file, in bytes.
const maxFile = 64 << 10

// Create makes a new authority in dir; whatever is there is kept beside as
// dir.old, replacing an earlier one. A crash half-way leaves no dir or the whole
// one.
func Create(dir string, opts Options) (*CA, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	ca, err := newCA(opts)
	if err != nil {
		return nil, err
	}
	if err := ca.save(dir); err != nil {
		return nil, words.Errorf("cannot keep the certificate authority in %s: %w", dir, err)
	}
	opts.Log.Info("a local certificate authority was made", "dir", dir, "names", strings.Join(opts.Names, " "), "expires", ca.root.NotAfter.Format(time.DateOnly))
	return ca, nil
}

// save writes the files into a directory beside dir and then renames it.
func (ca *CA) save(dir string) error {
	key, err := x509.MarshalPKCS8PrivateKey(ca.key)
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	parent, base := filepath.Split(dir)
	if err := private.Dir(parent); err != nil {
		return err
	}
	// A crash before the rename leaves a directory of this pattern, with a key
	// nobody trusts in it.
	pattern := "." + base + ".new-"
	beside, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range beside {
		if strings.HasPrefix(e.Name(), pattern) {
			if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
				return err
			}
		}
	}
	tmp, err := os.MkdirTemp(parent, pattern) // 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // nothing is there any more after the rename
	for _, f := range []struct {
		name string
		data []byte
		mode fs.FileMode
	}{
		{RootFile, encode(typeCertificate, ca.root.Raw), 0o644},
		{IntermediateFile, encode(typeCertificate, ca.intermediate.Raw), 0o644},
		{IntermediateKeyFile, encode(typeKey, key), 0o600},
	} {
		if err := writeFile(filepath.Join(tmp, f.name), f.data, f.mode); err != nil {
			return err
		}
	}
	if err := durable.SyncDir(tmp); err != nil {
		return err
	}
	if err := moveAside(dir); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return durable.SyncDir(parent)
}

// moveAside makes room for dir, keeping what was there as dir.old but for its
// key: browsers may trust the old root for years, and nobody needs to sign with
// it any more.
func moveAside(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	old := dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(old, IntermediateKeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func writeFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// load reads the authority of dir and checks it whole. The error is
// fs.ErrNotExist when there is none and errUnusable when there is one that
// cannot be used; anything else is a file that could not be read.
func load(dir string, opts Options) (*CA, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, words.Errorf("the certificate authority: %w", err)
	}
	ca := &CA{opts: opts}
	if ca.root, err = readCertificate(dir, RootFile); err != nil {
		return nil, err
	}
	if ca.intermediate, err = readCertificate(dir, IntermediateFile); err != nil {
		return nil, err
	}
	if ca.key, err = readKey(dir); err != nil {
		return nil, err
	}
	if err := ca.check(); err != nil {
		return nil, err
	}
	return ca, nil
}

// check holds the parts against each other, the clock and the options.
func (ca *CA) check() error {
	pub, ok := ca.intermediate.PublicKey.(*ecdsa.PublicKey)
	if !ok || !pub.Equal(&ca.key.PublicKey) {
		return unusable("%s does not belong to %s", IntermediateKeyFile, IntermediateFile)
	}
	// CheckSignatureFrom also wants the signer to be an authority.
	if err := ca.root.CheckSignatureFrom(ca.root); err != nil {
		return unusable("%s: %v", RootFile, err)
	}
	if err := ca.intermediate.CheckSignatureFrom(ca.root); err != nil {
		return unusable("%s was not signed by %s: %v", IntermediateFile, RootFile, err)
	}
	for _, c := range []*x509.Certificate{ca.root, ca.intermediate} {
		names := slices.Sorted(slices.Values(c.PermittedDNSDomains))
		if !slices.Equal(names, ca.opts.Names) {
			return unusable("it is for %s and not for %s", strings.Join(names, ", "), strings.Join(ca.opts.Names, ", "))
		}
		if ca.opts.Now().Add(renewBefore).After(c.NotAfter) {
			return unusable("it expires on %s", c.NotAfter.Format(time.DateOnly))
		}
		if ca.opts.Now().Before(c.NotBefore) {
			// Not a reason to replace it: a clock that fell back to its
			// first day would cost the owner the trust in every browser.
			return words.Errorf("the certificate authority is valid only from %s; is the clock of this computer right? (if it is, remove the authority's directory)", c.NotBefore.Format(time.DateOnly))
		}
	}
	return nil
}

func readCertificate(dir, name string) (*x509.Certificate, error) {
	der, err := readPEM(dir, name, typeCertificate)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, unusable("%s is damaged: %v", name, err)
	}
	return c, nil
}

func readKey(dir string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(dir, IntermediateKeyFile, typeKey)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, IntermediateKeyFile))
	if err != nil {
		return nil, err
	}
	// Windows keeps no such bits.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, unusable("%s could be read by others (mode %04o)", IntermediateKeyFile, info.Mode().Perm())
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, unusable("%s is damaged", IntermediateKeyFile) // the parser's words might quote the key
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, unusable("%s holds a key of another kind", IntermediateKeyFile)
	}
	return key, nil
}

// readPEM reads the one block of a file. Missing from a directory that exists,
// it is damage, not absence.
func readPEM(dir, name, kind string) ([]byte, error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unusable("%s is missing", name)
	}
	if err != nil {
		return nil, words.Errorf("cannot read the certificate authority: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, unusable("%s is damaged", name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, words.Errorf("cannot read the certificate authority: %w", err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != kind || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, unusable("%s is damaged", name)
	}
	return block.Bytes, nil
}

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUnusable, fmt.Sprintf(format, args...))
}
