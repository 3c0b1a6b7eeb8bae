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
	"strconv"
	"time"
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
	if err := srv.Serve(tls.NewListener(n.admins, config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
