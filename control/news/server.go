package news

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// clientName is the one user of a server, this process.
	clientName  = "node"
	clusterName = "porchlight"
	// startWait bounds how long the server may take to listen.
	startWait = 10 * time.Second
	// A connection between nodes is dead when pings stay without an answer: the next one
	// after pingsOut of them ends it. So a node that has fallen silent is forgotten after
	// goneAfter at most, and one that was killed with its connection.
	pingEvery = time.Second
	pingsOut  = 2
	goneAfter = (pingsOut + 1) * pingEvery
	// strangerWait is how long who connects may take to show a certificate.
	strangerWait = 2 // seconds
)

// options are those of this node's server, without the other nodes' addresses. The
// client port is of no use to anybody but the server itself, which is not ready
// without one, and asks for a secret that stays in memory.
func options(cfg Config, mutual *tls.Config, secret string) *server.Options {
	host, port, _ := net.SplitHostPort(cfg.Listen) // New has looked at it
	n, _ := strconv.Atoi(port)
	if n == 0 {
		n = server.RANDOM_PORT
	}
	return &server.Options{
		ServerName: serverName(cfg.Node, cfg.Run),
		Host:       "127.0.0.1", Port: server.RANDOM_PORT,
		// A list of one: with a single name instead, each change of the addresses
		// would end this process's own connection.
		Users:  []*server.User{{Username: clientName, Password: secret}},
		NoSigs: true, NoSystemAccount: true, MaxConn: 16,
		MaxPayload: maxMessage, MaxControlLine: 1 << 10, AuthTimeout: strangerWait,
		Cluster: server.ClusterOpts{
			Name: clusterName, Host: host, Port: n, NoAdvertise: true,
			TLSConfig: mutual, TLSTimeout: strangerWait, AuthTimeout: strangerWait,
			PoolSize: 1, PingInterval: pingEvery, MaxPingsOut: pingsOut, ConnectRetries: 1,
			Compression: server.CompressionOpts{Mode: server.CompressionOff},
		},
	}
}

func serverName(node, run string) string { return node + "." + run }

func startServer(cfg Config, mutual *tls.Config, secret string, log *slog.Logger) (*server.Server, error) {
	if err := canListen(cfg.Listen); err != nil {
		return nil, err
	}
	s, err := server.NewServer(options(cfg, mutual, secret))
	if err != nil {
		return nil, fmt.Errorf("news: %w", err)
	}
	lines := &logger{log: log}
	s.SetLoggerV2(lines, false, false, false)
	s.Start()
	if !s.ReadyForConnections(startWait) {
		s.Shutdown()
		return nil, fmt.Errorf("news: the server does not listen on %s: %w", cfg.Listen, errors.Join(lines.fatal(), errNotReady))
	}
	return s, nil
}

var errNotReady = errors.New("it is not ready")

// canListen gives the system's own error where an address cannot be had, of which
// the server keeps only the words.
func canListen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// logger writes what the server says. Its errors are mostly those of whoever
// connects, so none is more than a warning.
type logger struct {
	log *slog.Logger

	mu  sync.Mutex
	err error // guarded by mu: why the server could not start
}

func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *logger) say(to func(string, ...any), format string, v []any) {
	to("news between nodes", "said", fmt.Sprintf(format, v...))
}

func (l *logger) Noticef(format string, v ...any) { l.say(l.log.Debug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.say(l.log.Info, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.say(l.log.Info, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.say(l.log.Debug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.say(l.log.Debug, format, v) }

// Fatalf keeps why; the server ends by itself.
func (l *logger) Fatalf(format string, v ...any) {
	l.say(l.log.Warn, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = fmt.Errorf(format, v...)
}
