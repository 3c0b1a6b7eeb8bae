package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"porchlight/internal/bounds"
)

// /admin on an address of its own. Browsers give a passkey to the auth host's own origin alone,
// so people sign in there and come back; cookies are of a host, whatever its port, so that the
// session which they have then is known here, and this address has to be one of that host.

func (c *Config) checkAdminAddress() error {
	if c.AdminAddress == "" {
		return nil
	}
	if _, _, ok := hostPort(c.AdminAddress); !ok {
		return fmt.Errorf("%q is not an address of the form 192.0.2.1:8444 or :8444 (--admin-address)", c.AdminAddress)
	}
	return nil
}

func (n *Node) listenForAdmins(ctx context.Context) (err error) {
	if n.cfg.AdminAddress == "" {
		return nil
	}
	if n.admins, err = new(net.ListenConfig).Listen(ctx, "tcp", n.cfg.AdminAddress); err != nil {
		return cannotListen(n.cfg.AdminAddress, "--admin-address", err)
	}
	return nil
}

// AdminURL is where operators find /admin.
func (n *Node) AdminURL() string {
	if n.admins == nil {
		return n.cfg.AuthURL()
	}
	host, port := n.cfg.AuthHost, n.admins.Addr().(*net.TCPAddr).Port
	if port == 443 {
		return "https://" + host
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// newRefused counts the connections that found this address full.
func newRefused() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "porchlight_admin_refused_connections_total",
		Help: "Connections to --admin-address that were closed as there were as many as there may be.",
	})
}

// serveAdmins answers operators until ctx is done.
func (n *Node) serveAdmins(ctx context.Context) error {
	config := n.pagesTLS.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	srv := &http.Server{
		Handler:           n.pages,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(cmp.Or(n.cfg.Log, slog.New(slog.DiscardHandler)).Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	most := max(n.cfg.Limits.WithDefaults().AuthConnections/adminShare, adminShare)
	door := &doorkeeper{Listener: n.admins, most: most, perSource: most / adminShare, refused: n.refused.Inc, by: map[netip.Prefix]int{}}
	if err := srv.Serve(tls.NewListener(door, config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// adminShare is which part of the auth host's connections there may be here, and which part of
// those one network may have.
const adminShare = 8

// doorkeeper bounds the connections of a listener, in all and by network (an IPv4 address or an
// IPv6 /64): who comes when there are as many is closed at once.
type doorkeeper struct {
	net.Listener
	most, perSource int
	refused         func()

	mu sync.Mutex // protects what follows
	in int
	by map[netip.Prefix]int
}

// Accept implements net.Listener.
func (d *doorkeeper) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var source netip.Prefix
		if addr, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			source = bounds.Network(addr.AddrPort().Addr(), 32, 64)
		}
		if d.enters(source) {
			return &entrant{Conn: conn, leave: sync.OnceFunc(func() { d.leaves(source) })}, nil
		}
		d.refused()
		_ = conn.Close()
	}
}

func (d *doorkeeper) enters(source netip.Prefix) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.in >= d.most || d.by[source] >= d.perSource {
		return false
	}
	d.in++
	d.by[source]++
	return true
}

func (d *doorkeeper) leaves(source netip.Prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.in--
	if d.by[source]--; d.by[source] == 0 {
		delete(d.by, source)
	}
}

// entrant is a connection that was let in.
type entrant struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (e *entrant) Close() error {
	defer e.leave()
	return e.Conn.Close()
}
