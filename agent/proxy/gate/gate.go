// Package gate takes visitors' connections and judges what comes in on them.
//
// In comes a raw connection from the tunnel: it is counted (conns), TLS ends here
// (front), and the bytes of HTTP/1.1 are looked at before net/http reads them
// (strictConn). Out go requests that have one reading, to the handler, which says
// of each connection on which a request was let through that it was (Conn.LetIn).
// Who the visitor is, and which app is asked for, nothing here knows.
package gate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/agent/proxy/limits"
)

// Config of Serve.
type Config struct {
	TLS     *tls.Config // gives the certificate of each host name
	Handler http.Handler
	// ByLibrary has net/http's server read everything, HTTP/2 too: the measure that tests
	// hold our own code to. No program sets it.
	ByLibrary bool
	// Files is how many files this process may have open.
	Files int
	// LetInWithin is how long a connection has for a first request that is let
	// through; 10 s when zero.
	LetInWithin time.Duration
	// CutOff ends what the handler still has open once the time to finish is over.
	CutOff func()
	// Broken is told of a panic or an inconsistency of our own way, which has cost
	// somebody a connection; nil for not.
	Broken func(what any)
	// Crowded is told when visitors have all they may have, of connections or memory; it must
	// not wait. Nil for not.
	Crowded func()
	// Refused is told the name in each handshake that the other side ended because it
	// did not take the certificate; nil for not.
	Refused func(serverName string)
	// Asks says whose certificates visitors of a name are asked for; nil for none, and where
	// it is nil.
	Asks func(serverName string) *x509.CertPool
	Log  *slog.Logger
}

// Serve takes raw visitor connections from ln, whose RemoteAddr is the
// visitor's, until ctx ends; then it lets requests finish for two seconds,
// closes the rest and returns nil once every handler has returned. It returns
// early only when ln fails.
func Serve(ctx context.Context, ln net.Listener, c Config) error {
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	conf := forHTTP(c.TLS)
	askCertificates(conf, c.Asks)
	if c.LetInWithin <= 0 {
		c.LetInWithin = limits.LetIn
	}
	front := newFront(ln, conf, newConns(c.Files, c.LetInWithin, c.Crowded, c.Log), c.Refused, c.Log)
	var handlers sync.WaitGroup
	srv := newServer(base, conf, c.Log)
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		ConnOf(r).hurry(w)
		limitBody(w, r, limits.BodyTimeout) // until there is an app to take it
		c.Handler.ServeHTTP(w, r)
	})
	if c.ByLibrary {
		addHTTP2(srv)
	} else {
		front.own = newOwnWay(base, srv, c)
	}
	fronted := make(chan struct{})
	go func() { defer close(fronted); front.run() }()
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(front) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("take visitors: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.ShutdownGrace)
	defer cancel()
	if err != nil || shutdown(grace, srv, front.own) != nil {
		c.Log.Warn("requests of visitors were cut off", "after", limits.ShutdownGrace)
		c.CutOff()
		srv.Close()
	}
	cutOff() // WebSockets too, which the server no longer knows
	front.own.close()
	handlers.Wait()
	front.Close()
	<-fronted
	if err == nil {
		<-failed
	}
	return err
}

// shutdown lets the requests of both ways finish.
func shutdown(ctx context.Context, srv *http.Server, own *ownWay) error {
	var all errgroup.Group
	all.Go(func() error { return srv.Shutdown(ctx) })
	if own != nil {
		all.Go(func() error { return own.http1.Shutdown(ctx) })
		all.Go(func() error { return own.http2.Shutdown(ctx) })
	}
	return all.Wait()
}

func forHTTP(conf *tls.Config) *tls.Config {
	conf = conf.Clone()
	// Full records from the first byte on: a page of ours or an app's comes in
	// one system call instead of twelve.
	conf.DynamicRecordSizingDisabled = true
	// Whatever else TLS was set up to negotiate ends with its handshake.
	for _, ours := range []string{"http/1.1", "h2"} {
		if !slices.Contains(conf.NextProtos, ours) {
			conf.NextProtos = append([]string{ours}, conf.NextProtos...)
		}
	}
	return conf
}

// newServer makes the server of the HTTP/1.1 that is not plain.
func newServer(base context.Context, conf *tls.Config, log *slog.Logger) *http.Server {
	srv := &http.Server{
		TLSConfig:                    conf,
		ReadHeaderTimeout:            limits.HeaderTimeout,
		IdleTimeout:                  limits.Idle,
		MaxHeaderBytes:               limits.Header - 10*32, // to which HTTP/2 adds as much
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return base },
		ConnContext:                  withConn,
		ConnState:                    follow,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Protocols:                    new(http.Protocols),
	}
	srv.Protocols.SetHTTP1(true)
	return srv
}

// addHTTP2 has srv speak HTTP/2 with the limits that ours has.
func addHTTP2(srv *http.Server) {
	srv.Protocols.SetHTTP2(true)
	srv.HTTP2 = &http.HTTP2Config{
		// The room for a frame is taken when its first nine bytes are here.
		MaxReadFrameSize:              limits.Frame,
		MaxConcurrentStreams:          limits.Streams,
		MaxDecoderHeaderTableSize:     limits.HeaderTable,
		MaxEncoderHeaderTableSize:     limits.HeaderTable,
		MaxReceiveBufferPerConnection: limits.Window,
		MaxReceiveBufferPerStream:     limits.Window,
		// A visitor who vanished without a word must not hold streams open.
		SendPingTimeout:  limits.PingAfter,
		PingTimeout:      limits.PingTimeout,
		WriteByteTimeout: limits.WriteStall,
	}
}
