package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

const (
	maxFile  = 16 << 10 // bytes
	maxLabel = 40       // characters
)

// Config is a provider as its operator wrote it down.
type Config struct {
	// Name stands in the addresses of this provider, so it stays.
	Name     string `json:"name"`
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
	// SecretFile is relative to the file that names it.
	SecretFile string `json:"clientSecretFile"`
	Secret     string `json:"-"`
	// Label is what people read on the button.
	Label string `json:"label"`
	// Domains are those the provider speaks for: a mail address there that it calls verified
	// is whoever's signed in.
	Domains []string `json:"domains"`
	// Groups is the claim that lists the groups somebody is in there; empty for none.
	Groups string `json:"groups"`
	// Private says that the provider may be in the server's own network, or on its machine.
	Private bool `json:"private"`
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// ReadFile reads the file of a provider. The errors are sentences for the operator, and
// hold nothing of a secret.
func ReadFile(path string) (Config, error) {
	raw, err := read(path)
	if err != nil {
		return Config{}, fmt.Errorf("cannot read a provider: %w (--oidc)", err)
	}
	var c Config
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%s is not the JSON of a provider: %w (--oidc)", path, err)
	}
	if d.Decode(new(any)) != io.EOF {
		return Config{}, fmt.Errorf("%s holds more than one provider: write a file for each (--oidc)", path)
	}
	if err := c.check(); err != nil {
		return Config{}, fmt.Errorf("%s: %w (--oidc)", path, err)
	}
	secret := c.SecretFile
	if !filepath.IsAbs(secret) {
		secret = filepath.Join(filepath.Dir(path), secret)
	}
	if c.Secret, err = readSecret(secret); err != nil {
		return Config{}, fmt.Errorf("%s: %w (--oidc)", path, err)
	}
	return c, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return raw, err
}

func readSecret(path string) (string, error) {
	raw, err := read(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the client secret: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the client secret: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("every user of this machine may read %s, which holds the client secret: chmod 600 it", path)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	if secret == "" || strings.ContainsAny(secret, "\r\n\x00") {
		return "", fmt.Errorf("%s does not hold a client secret: it should be one line", path)
	}
	return secret, nil
}

// check says what is wrong, and writes domains as addresses are written here.
func (c *Config) check() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case !namePattern.MatchString(c.Name):
		return fmt.Errorf("%q is no name: it has a to z, 0 to 9 and hyphens, 32 at most", c.Name)
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !c.scheme(u):
		return fmt.Errorf("%q is no issuer: it begins with https:// (or http:// on this machine, with \"private\": true)", c.Issuer)
	case c.ClientID == "":
		return errors.New("clientId is missing")
	case c.SecretFile == "":
		return errors.New("clientSecretFile is missing")
	case len(c.Groups) > maxLabel || strings.ContainsFunc(c.Groups, func(r rune) bool { return r <= ' ' }):
		return fmt.Errorf("groups is the name of a claim, of %d bytes at most", maxLabel)
	case strings.TrimSpace(c.Label) == "" || len([]rune(c.Label)) > maxLabel || strings.ContainsFunc(c.Label, func(r rune) bool { return r < ' ' }):
		return fmt.Errorf("label is what stands on the button, of 1 to %d characters", maxLabel)
	}
	return c.cleanDomains()
}

// cleanDomains refuses what is no domain, and writes each as addresses are written here.
func (c *Config) cleanDomains() error {
	for i, domain := range c.Domains {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil || !strings.Contains(ascii, ".") {
			return fmt.Errorf("%q is no domain of mail addresses, like porch.example", domain)
		}
		c.Domains[i] = ascii
	}
	return nil
}

// SpeaksFor says whether the provider speaks for a canonical mail address.
func (c Config) SpeaksFor(email string) bool {
	return slices.Contains(c.Domains, email[strings.LastIndexByte(email, '@')+1:])
}
