package trust

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"porchlight/internal/words"
)

// nickname prefix of our certificates in a store; the serial number follows, so
// that two data directories do not overwrite each other's.
const nickname = "Porchlight on this computer "

func (a *Authority) nick() string { return nickname + a.cert.SerialNumber.Text(16) }

// storeFile is the file of an NSS database in its directory.
const storeFile = "cert9.db"

// stores are the NSS databases of the owner: Chromium's, which is shared by its
// relatives and need not be there, and the others that are: one for each profile of
// Firefox, also as a snap or a flatpak, and those of Chromium and Brave as snaps.
func stores() (shared string, others []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil, err
	}
	shared = filepath.Join(home, ".pki", "nssdb")
	for _, root := range []string{
		filepath.Join(home, ".mozilla", "firefox"),
		filepath.Join(home, "snap", "firefox", "common", ".mozilla", "firefox"),
		filepath.Join(home, ".var", "app", "org.mozilla.firefox", ".mozilla", "firefox"),
	} {
		found, _ := filepath.Glob(filepath.Join(root, "*", storeFile)) // fails on a bad pattern only
		for _, db := range found {
			others = append(others, filepath.Dir(db))
		}
	}
	for _, snap := range []string{"chromium", "brave"} {
		db := filepath.Join(home, "snap", snap, "current", ".pki", "nssdb")
		if _, err := os.Stat(filepath.Join(db, storeFile)); err == nil {
			others = append(others, db)
		}
	}
	return shared, others, nil
}

// installers are the commands that install certutil, by the program of the
// distribution they need.
var installers = []struct{ program, command string }{
	{"apt", "sudo apt install libnss3-tools"},
	{"dnf", "sudo dnf install nss-tools"},
	{"zypper", "sudo zypper install mozilla-nss-tools"},
	{"pacman", "sudo pacman -S nss"},
	{"apk", "sudo apk add nss-tools"},
}

// certutilPath finds the program; the error is a *MissingError.
func certutilPath() (string, error) {
	program, err := exec.LookPath("certutil")
	if err == nil {
		return program, nil
	}
	missing := &MissingError{Program: "certutil"}
	for _, i := range installers {
		if _, err := exec.LookPath(i.program); err == nil {
			missing.Install = i.command
			break
		}
	}
	return "", missing
}

func certutil(ctx context.Context, db string, args ...string) ([]byte, error) {
	program, err := certutilPath()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-d", "sql:" + db}, args...)...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, words.Errorf("the store of certificates in %s cannot be used: %s", db, strings.TrimSpace(problem.String()))
	}
	return out.Bytes(), nil
}

// holds says whether a store has this certificate, not merely one of its name.
func (a *Authority) holds(ctx context.Context, db string) bool {
	out, err := certutil(ctx, db, "-L", "-n", a.nick(), "-r")
	return err == nil && bytes.Equal(out, a.cert.Raw)
}

func (a *Authority) trusted(ctx context.Context) (bool, error) {
	if _, err := certutilPath(); err != nil {
		return false, err
	}
	shared, others, err := stores()
	if err != nil {
		return false, err
	}
	for _, db := range append(others, shared) {
		if !a.holds(ctx, db) {
			return false, nil
		}
	}
	return true, nil
}

func (a *Authority) trust(ctx context.Context) error {
	if _, err := certutilPath(); err != nil {
		return err
	}
	shared, others, err := stores()
	if err != nil {
		return err
	}
	// A Chromium that never ran has no store yet, and takes the one it finds.
	if _, err := os.Stat(filepath.Join(shared, storeFile)); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(shared, 0o700); err != nil {
			return words.Errorf("make a store of certificates: %w", err)
		}
		if _, err := certutil(ctx, shared, "-N", "--empty-password"); err != nil {
			return err
		}
	}
	var problems []error
	for _, db := range append(others, shared) {
		if a.holds(ctx, db) {
			continue
		}
		_, err := certutil(ctx, db, "-A", "-t", "C,,", "-n", a.nick(), "-i", a.Path)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (a *Authority) distrust(ctx context.Context) error {
	if _, err := certutilPath(); err != nil {
		return err
	}
	shared, others, err := stores()
	if err != nil {
		return err
	}
	var problems []error
	for _, db := range append(others, shared) {
		if a.holds(ctx, db) {
			_, err := certutil(ctx, db, "-D", "-n", a.nick())
			problems = append(problems, err)
		} else {
			problems = append(problems, readable(ctx, db))
		}
	}
	return errors.Join(problems...)
}

// readable is an error for a store that is there and cannot be read: nobody can say then
// what it trusts.
func readable(ctx context.Context, db string) error {
	if _, err := os.Stat(filepath.Join(db, storeFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := certutil(ctx, db, "-L")
	return err
}
