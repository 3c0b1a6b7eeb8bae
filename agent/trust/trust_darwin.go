package trust

import (
	"context"
	"crypto/sha1" // what the keychain names certificates by
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"porchlight/internal/words"
)

func keychain() (string, error) {
	home, err := os.UserHomeDir()
	return filepath.Join(home, "Library", "Keychains", "login.keychain-db"), err
}

func security(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "/usr/bin/security", args...).CombinedOutput()
	if err != nil {
		return "", words.Errorf("the login keychain refused: %s", strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

func (a *Authority) hash() string {
	sum := sha1.Sum(a.cert.Raw)
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func (a *Authority) trusted(ctx context.Context) (bool, error) {
	path, err := keychain()
	if err != nil {
		return false, err
	}
	out, err := security(ctx, "find-certificate", "-a", "-Z", path)
	if err != nil || !strings.Contains(out, a.hash()) {
		return false, err
	}
	// Being there is not being trusted.
	_, err = security(ctx, "verify-cert", "-c", a.Path, "-L", "-l", "-k", path)
	return err == nil, nil
}

func (a *Authority) trust(ctx context.Context) error {
	path, err := keychain()
	if err != nil {
		return err
	}
	_, err = security(ctx, "add-trusted-cert", "-r", "trustRoot", "-p", "ssl", "-k", path, a.Path)
	return err
}

func (a *Authority) distrust(ctx context.Context) error {
	path, err := keychain()
	if err != nil {
		return err
	}
	if _, err := security(ctx, "remove-trusted-cert", a.Path); err != nil {
		return err
	}
	_, err = security(ctx, "delete-certificate", "-Z", a.hash(), path)
	return err
}
