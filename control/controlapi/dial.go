package controlapi

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

const (
	// nextAfter is how long an address has to answer before the next of the same name is
	// tried beside it, and triedMost how many are tried (RFC 8305).
	nextAfter = 250 * time.Millisecond
	triedMost = 8
)

// DialContext dials hosts under localhost on this computer, 127.0.0.1 and ::1, because
// not every resolver knows those names (RFC 6761, section 6.3, leaves it to them). Of a
// host with several addresses the first that answers is taken.
func DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return DialWith(&net.Dialer{})(ctx, network, address)
}

// DialWith is DialContext with the settings of a dialer. A Dialer alone tries addresses
// of one family one after the other, each for its share of the whole wait.
func DialWith(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err == nil || host == "" {
			return d.DialContext(ctx, network, address)
		}
		addrs, err := addressesOf(ctx, d, host)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return race(ctx, inTurns(addrs), func(ctx context.Context, addr netip.Addr) (net.Conn, error) {
			return d.DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
		})
	}
}

// addressesOf a host, at least one, the best first.
func addressesOf(ctx context.Context, d *net.Dialer, host string) (addrs []netip.Addr, err error) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	addrs, err = cmp.Or(d.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, err
}

// inTurns has addresses of the two families follow each other, from the family of the
// first on, so that one that leads nowhere costs a single step.
func inTurns(addrs []netip.Addr) (mixed []netip.Addr) {
	var same, other []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			same = append(same, a)
		} else {
			other = append(other, a)
		}
	}
	for i := range max(len(same), len(other)) {
		mixed = append(mixed, same[min(i, len(same)):min(i+1, len(same))]...)
		mixed = append(mixed, other[min(i, len(other)):min(i+1, len(other))]...)
	}
	return mixed[:min(len(mixed), triedMost)]
}

// race dials one address after the other, the next when the one before has failed or
// did not answer for nextAfter, and takes the first that answers. Where none does, what
// the first said is the error.
func race(ctx context.Context, addrs []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done) // whoever connects from now on is too late
	type outcome struct {
		conn net.Conn
		err  error
		i    int
	}
	outcomes := make(chan outcome)
	errs, next := make([]error, len(addrs)), time.NewTimer(0)
	defer next.Stop()
	for begun, ended := 0, 0; ended < len(addrs); {
		select {
		case <-next.C:
			i := begun
			go func() {
				conn, err := dial(ctx, addrs[i])
				select {
				case outcomes <- outcome{conn, err, i}:
				case <-done:
					if err == nil {
						_ = conn.Close()
					}
				}
			}()
			if begun++; begun < len(addrs) {
				next.Reset(nextAfter)
			}
		case o := <-outcomes:
			if o.err == nil {
				return o.conn, nil
			}
			errs[o.i] = o.err
			if ended++; begun < len(addrs) {
				next.Reset(0)
			}
		}
	}
	return nil, errs[0]
}
