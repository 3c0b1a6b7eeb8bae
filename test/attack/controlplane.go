//go:build linux

package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"porchlight/test/programs"
	"porchlight/test/rig"
)

// plane is a control plane on a data directory.
type plane struct {
	*programs.Process
	s       *stage
	data    string
	mails   *rig.Mails
	authURL string
	listen  string
	listens []string       // that and the others
	roots   *x509.CertPool // of trust
}

// startPlane runs porchlight-control on a data directory, a new one mostly.
// listen is 127.0.0.1:0, or where it listened before.
func (s *stage) startPlane(ctx context.Context, data, listen string, more ...string) (*plane, error) {
	mails := data + "-mails"
	c := &plane{s: s, data: data, mails: rig.MailsIn(mails)}
	p, line, err := s.start(ctx, nil, filepath.Join(s.bin, "porchlight-control"), append([]string{"serve", "--data", data, "--domain", "localhost",
		"--listen", listen, "--outbox", mails, "--log-level", "warn", "--grace", "1s"}, more...)...)
	c.Process = p
	if err != nil {
		return c, err
	}
	words := strings.Fields(strings.ReplaceAll(line, ",", ""))
	if len(words) < 8 || !strings.HasPrefix(line, "Porchlight control plane at ") {
		return c, fmt.Errorf("the control plane said %q", line)
	}
	c.authURL, c.listen, c.listens = words[4], words[7], words[7:]
	return c, nil
}

// cli runs an administration command and decodes what it prints into out, unless
// that is nil.
func (c *plane) cli(ctx context.Context, out any, args ...string) error {
	args = append(args, "--data", c.data)
	if out != nil {
		args = append(args, "--json")
	}
	said, err := command(ctx, filepath.Join(c.s.bin, "porchlight-control"), args...)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(said, out)
}
