package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"porchlight/internal/commandline"
)

// envSMTPPassword is a setting that is no flag: it would be a password in the
// command line, which every user of a machine can read.
const envSMTPPassword = envPrefix + "SMTP_PASSWORD"

// maxPassword bounds a password's file, in bytes.
const maxPassword = 4 << 10

// credentials stands, at the beginning of a file's name, for the directory with what
// systemd hands to a service (LoadCredential).
const credentials = "${CREDENTIALS_DIRECTORY}/"

// handedOver is the name of a file that a setting names, with the directory of what
// systemd handed over in its place.
func handedOver(name string, getenv func(string) (string, bool)) (string, error) {
	rest, ok := strings.CutPrefix(name, credentials)
	if !ok {
		return name, nil
	}
	dir, _ := getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return "", commandline.Usagef("%s is there only in a service that systemd hands it to (LoadCredential); here, name the file itself", name)
	}
	return filepath.Join(dir, rest), nil
}

// handedOver puts the directory of what systemd handed over into the names of files.
func (w *where) handedOver(passwordFile *string) error {
	names := []*string{passwordFile, &w.CertFile, &w.KeyFile, &w.SealKey}
	for i := range w.OIDC {
		names = append(names, &w.OIDC[i])
	}
	for _, name := range names {
		file, err := handedOver(*name, os.LookupEnv)
		if err != nil {
			return err
		}
		*name = file
	}
	return nil
}

// smtpPassword is the password given apart from the mail server's address: in
// the file, whose last line end is not part of it, or in the environment. It is
// empty when there is none.
func smtpPassword(file string, getenv func(string) (string, bool)) (string, error) {
	password, _ := getenv(envSMTPPassword)
	if file == "" {
		return password, nil
	}
	if password != "" {
		return "", commandline.Usagef("the mail server's password is given twice: in --smtp-password-file and in %s", envSMTPPassword)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the mail server's password: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the mail server's password: %w", err)
	}
	password = strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	if password == "" || len(raw) > maxPassword || strings.ContainsAny(password, "\r\n\x00") {
		return "", commandline.Usagef("%s does not hold a password: it should be one line", file)
	}
	return password, nil
}

// oneHost finds the hosts but the first in the address of a database with several, which
// is no URL otherwise.
var oneHost = regexp.MustCompile(`^([a-z]+://(?:[^/?]*@)?[^,/?@]*)(?:,[^/?@]*)`)

// passwordsInArgv names the flags that hold a password, before anything but the
// command line was read.
func (w *where) passwordsInArgv() (names []string) {
	for name, value := range map[string]string{"smtp": w.Mail.SMTP, "postgres": w.Postgres} {
		u, err := url.Parse(oneHost.ReplaceAllString(value, "$1"))
		if err != nil {
			names = append(names, name) // who knows what is in it
			continue
		}
		if _, has := u.User.Password(); has || strings.Contains(value, "password=") {
			names = append(names, name)
		}
	}
	return names
}
