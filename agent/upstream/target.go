// Package upstream reaches apps: at a port of this computer, over HTTP or HTTPS, or at
// a unix socket.
//
// In comes a Target, which is where the owner approved that an app answers, and
// Checks, which say who may be behind it. Out comes a connection on which nothing
// was sent before the checks said yes. It knows no HTTP, and decides nothing about
// apps: who may be where is asked.
package upstream

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
)

// The two addresses of this computer an app may listen on. IPv4 is the zero Target's.
const (
	IPv4 = "127.0.0.1"
	IPv6 = "::1"
)

const dialTimeout = 5 * time.Second // with the handshake of TLS

// Target is where and how one app is reached.
type Target struct {
	Address string // IPv4 or IPv6; empty is IPv4
	Port    int
	Scheme  string // agentapi.UpstreamHTTP, UpstreamHTTPS or UpstreamH2C
	Socket  string // of a unix socket, which is dialled in place of the port; else empty
	// Host is what the app is told it is called, where that is fixed; else empty.
	Host string
	// Pin has Dial ask about every key but Key, which is empty as long as none was
	// kept.
	Pin bool
	Key string
}

// Of is the target of an app with these options. It costs no allocation.
func Of(address string, port int, key string, o agentapi.AppOptions) Target {
	return Target{Address: address, Port: port, Scheme: o.Scheme(), Socket: o.Socket(), Host: o.HostHeader, Pin: o.Pin, Key: key}
}

// Plain says whether requests go out on the connection itself, without TLS.
func (t Target) Plain() bool { return t.Scheme != agentapi.UpstreamHTTPS }

// TCP is the host and port that is dialled where there is no socket.
func (t Target) TCP() string {
	return netip.AddrPortFrom(t.IP(), uint16(t.Port)).String()
}

// Other is the same port on the other address of this computer.
func (t Target) Other() Target {
	if t.Address == IPv6 {
		t.Address = ""
	} else {
		t.Address = IPv6
	}
	return t
}

// IP is the address that is dialled where there is no socket.
func (t Target) IP() netip.Addr {
	if t.Address == IPv6 {
		return procinfo.IPv6
	}
	return procinfo.IPv4
}

// Errors of Dial. Where nobody answers, it is a *net.OpError, like that of net.Dial.
var (
	ErrStranger = errors.New("a program of another user is where the app should be")
	ErrKey      = errors.New("the app shows another key than the owner approved")
	ErrNoHTTP2  = errors.New("the app speaks no HTTP/2 over TLS, which gRPC needs")
)

// SocketError is why a unix socket is not dialled: a sentence.
type SocketError string

func (e SocketError) Error() string { return string(e) }

// Checks say who may be sent something. They are asked once a connection stands.
type Checks struct {
	// Peer is asked before a byte is sent, with who took the connection where that is
	// known from the connection itself, at a socket; nil: anybody may.
	Peer func(peer agentapi.Listener) bool
	// Key is asked where Target.Pin is set and the key is not Target.Key, before
	// anything but the handshake is sent; nil: none but Target.Key.
	Key func(key string) bool
	// Took is told who took the connection: the number of the socket that listens, or of
	// the process at a unix socket. It is another once the app was started anew, and 0
	// where the system does not say; nil for not.
	Took func(listener uint64)
}

// dialer has no keep-alive of TCP: both ends are of this computer, and none of them can
// vanish without the other being told.
var dialer = &net.Dialer{Timeout: dialTimeout, KeepAlive: -1}

// Dial makes a new connection. The protocols are what is offered over TLS, the best
// first; nil for HTTP/1.1.
func (t Target) Dial(ctx context.Context, c Checks, protocols ...string) (net.Conn, error) {
	conn, err := t.admitted(ctx, c)
	if err != nil {
		return nil, err
	}
	if t.Plain() {
		return conn, nil
	}
	secure, err := t.secure(ctx, conn, c, protocols)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// tries is how often a program that comes or goes just then has us connect anew.
const tries = 3

// admitted is a new connection to somebody the checks said yes to. Who took it is read
// from who listens, and that says so only if the same socket listened from before the
// connection was made until after the look: a program could take a connection, stop
// listening, and leave the port to the one that was approved.
func (t Target) admitted(ctx context.Context, c Checks) (net.Conn, error) {
	for range tries {
		before := t.listening()
		conn, peer, err := t.connect(ctx)
		if err != nil {
			return nil, err
		}
		if c.Peer != nil && !c.Peer(peer) {
			conn.Close()
			return nil, ErrStranger
		}
		if t.listening() == before {
			if c.Took != nil {
				c.Took(before + uint64(peer.PID)) // of which one is 0
			}
			return conn, nil
		}
		conn.Close()
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} // nobody stays there
}

func (t Target) connect(ctx context.Context) (conn net.Conn, peer agentapi.Listener, err error) {
	if t.Socket != "" {
		return dialSocket(ctx, t.Socket)
	}
	conn, err = dialer.DialContext(ctx, "tcp", t.TCP())
	return conn, agentapi.Listener{}, err
}

// Refused says of an error of Dial that nobody listens there, or that this computer has
// no such address.
func Refused(err error) bool {
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// secure shakes hands. Whose program it is was looked at before, so any certificate
// will do, but for a key that is pinned.
func (t Target) secure(ctx context.Context, conn net.Conn, c Checks, protocols []string) (*tls.Conn, error) {
	if len(protocols) == 0 {
		protocols = []string{"http/1.1"}
	}
	out := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: t.serverName(), NextProtos: protocols})
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := out.HandshakeContext(ctx); err != nil {
		if protocols[0] == "h2" && strings.Contains(err.Error(), "no application protocol") {
			err = ErrNoHTTP2 // of a server that says so; crypto/tls has no type for it
		}
		return nil, fmt.Errorf("agree on TLS: %w", err)
	}
	if got := out.ConnectionState().NegotiatedProtocol; protocols[0] == "h2" && got != "h2" {
		return nil, ErrNoHTTP2
	}
	if !t.Pin {
		return out, nil
	}
	key := KeyOf(out.ConnectionState())
	if key == "" || key != t.Key && (c.Key == nil || !c.Key(key)) {
		return nil, ErrKey
	}
	return out, nil
}

// serverName is the name that the app chooses a certificate by.
func (t Target) serverName() string {
	host, _, err := net.SplitHostPort(t.Host)
	if err != nil {
		host = t.Host
	}
	if host == "" {
		return "localhost"
	}
	return host
}

// KeyOf is the fingerprint of the key somebody shows over TLS: SHA-256 of its
// SubjectPublicKeyInfo, as base64url. It is empty where none is shown.
func KeyOf(s tls.ConnectionState) string {
	if len(s.PeerCertificates) == 0 {
		return ""
	}
	sum := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
