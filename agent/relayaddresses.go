package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"net/netip"
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
	auth    controlapi.Relay // its auth host
	public  func(netip.Addr) bool

	mu   sync.Mutex // held while it is found out
	near bool       // the control plane was seen at such an address
}

var errRelayNear = errors.New("the control plane names a relay in this computer's own network, and is not there itself")

func (r *relayAddresses) allowed(ctx context.Context, address netip.Addr) error {
	if r.control.Local || r.public(address) {
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
	raw, err := controlapi.DialContext(ctx, "tcp", r.auth.Address)
	if err != nil {
		return false
	}
	defer raw.Close()
	secure := tls.Client(raw, &tls.Config{RootCAs: r.control.RootCAs, ServerName: r.auth.ServerName, MinVersion: tls.VersionTLS12})
	remote, err := netip.ParseAddrPort(raw.RemoteAddr().String())
	return err == nil && secure.HandshakeContext(ctx) == nil && !r.public(remote.Addr())
}
