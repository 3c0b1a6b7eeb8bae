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
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of visitors' connections and requests; bodies on their way to an app have
// none. What the number of open files leaves is in newConns.
const (
	maxHeader     = 64 << 10 // bytes of a head; more is 431
	maxFields     = 200      // header fields, trailers included; more is 431
	maxRefused    = 1 << 20  // bytes of a head that are read to answer it with 431
	maxFrame      = 16 << 10 // bytes of an HTTP/2 frame, all read before it is looked at
	headerTimeout = 10 * time.Second
	bodyTimeout   = 10 * time.Second // of what is answered without an app
	idleTimeout   = 2 * time.Minute
	shutdownGrace = 2 * time.Second

	// maxConns is the most connections in any case; by the process's files it
	// may be fewer. Half of the files are for requests, an eighth for everything
	// else.
	maxConns = 16 << 10
	// leastPerSource is more than a browser opens at once.
	leastPerSource = 32
	// letInTimeout is how long a connection has for a first request that is let
	// through, unless Config says otherwise.
	letInTimeout = 10 * time.Second
	// partingTime is how long a visitor has to notice that the connection ends.
	partingTime = time.Second
	// maxParting bounds how long requests under way put that end off.
	maxParting = 30 * time.Second
)

// Config of Serve.
type Config struct {
	TLS     *tls.Config // gives the certificate of each host name
	Handler http.Handler
	// Files is how many files this process may have open.
	Files int
	// LetInWithin is how long a connection has for a first request that is let
	// through; 10 s when zero.
	LetInWithin time.Duration
	// CutOff ends what the handler still has open once the time to finish is over.
	CutOff func()
	// Refused is told the name in each handshake that the other side ended because it
	// did not take the certificate; nil for not.
	Refused func(serverName string)
	Log     *slog.Logger
}

// Serve takes raw visitor connections from ln, whose RemoteAddr is the
// visitor's, until ctx ends; then it lets requests finish for two seconds,
// closes the rest and returns nil once every handler has returned. It returns
// early only when ln fails.
func Serve(ctx context.Context, ln net.Listener, c Config) error {
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	conf := forHTTP(c.TLS)
	if c.LetInWithin <= 0 {
		c.LetInWithin = letInTimeout
	}
	front := newFront(ln, conf, newConns(c.Files, c.LetInWithin, c.Log), c.Refused, c.Log)
	fronted := make(chan struct{})
	go func() { defer close(fronted); front.run() }()
	var handlers sync.WaitGroup
	srv := newServer(base, conf, c.Log)
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		ConnOf(r).hurry(w)
		limitBody(w, r, time.Now().Add(bodyTimeout)) // until there is an app to take it
		c.Handler.ServeHTTP(w, r)
	})
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(front) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("take visitors: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err != nil || srv.Shutdown(grace) != nil {
		c.CutOff()
		srv.Close()
	}
	cutOff() // WebSockets too, which the server no longer knows
	handlers.Wait()
	front.Close()
	<-fronted
	if err == nil {
		<-failed
	}
	return err
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

func newServer(base context.Context, conf *tls.Config, log *slog.Logger) *http.Server {
	return &http.Server{
		TLSConfig:                    conf,
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxRefused, // TooLarge looks before anything else does
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return base },
		ConnContext:                  withConn,
		ConnState:                    follow,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			// The room for a frame is taken when its first nine bytes are here.
			MaxReadFrameSize: maxFrame,
			// A visitor who vanished without a word must not hold streams open.
			SendPingTimeout:  30 * time.Second,
			PingTimeout:      15 * time.Second,
			WriteByteTimeout: time.Minute,
		},
	}
}
