package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"sync"

	"porchlight/control/controlapi"
)

// relayAddresses says where the relays may be that a control plane names: on the internet,
// or anywhere once the control plane itself, which the owner named, has shown who it is from
// an address that is not of the internet. So no operator elsewhere has this computer connect
// to what listens in its own network. How names are resolved does not count: an operator
// decides what theirs lead to.
type relayAddresses struct {
	control *ControlPlane
	public  func(netip.Addr) bool

	mu   sync.Mutex // held while it is found out
	near bool       // the control plane was seen at such an address
}

var errRelayNear = errors.New("the control plane names a relay in this computer's own network, and is not there itself")

func (r *relayAddresses) allowed(ctx context.Context, at netip.Addr) error {
	if r.control.Local || r.public(at) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.near {
		r.near = r.isNear(ctx)
	}
	if !r.near {
		return errRelayNear
	}
	return nil
}

// isNear connects to the control plane, whose certificate has to be good.
func (r *relayAddresses) isNear(ctx context.Context) bool {
	u, err := url.Parse(r.control.AuthURL)
	if err != nil {
		return false
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	raw, err := controlapi.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return false
	}
	defer raw.Close()
	secure := tls.Client(raw, &tls.Config{RootCAs: r.control.RootCAs, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	at, err := netip.ParseAddrPort(raw.RemoteAddr().String())
	return err == nil && secure.HandshakeContext(ctx) == nil && !r.public(at.Addr())
}
