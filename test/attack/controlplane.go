//go:build linux

package main

import (
	"context"
	"crypto/x509"

	"porchlight/test/pebble"
	"porchlight/test/rig"
)

// plane is a control plane on a data directory.
type plane struct {
	*rig.Node
	s     *stage
	mails *rig.Mails
	// authority gives the certificates of its computers; nil where they make them.
	authority *pebble.Authority
	roots     *x509.CertPool // once somebody is to trust it
}

// startPlane runs porchlight-control on a data directory, a new one mostly. One that did
// not begin to serve is returned, too.
func (s *stage) startPlane(ctx context.Context, data string, more ...string) (*plane, error) {
	mails := data + "-mails"
	c := &plane{s: s, mails: rig.MailsIn(mails)}
	var err error
	c.Node, err = s.rig(0).Node(ctx, data, append(more, "--domain", "localhost", "--outbox", mails)...)
	return c, err
}
