package health

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

// What an app speaks that does not speak what it was asked in.

// otherScheme finds the protocol an app speaks that is not the one it was asked in.
func (p *prober) otherScheme(ctx context.Context) (scheme string, ok bool) {
	asked := p.app.Target().Scheme
	plain := false
	if asked != agentapi.UpstreamHTTP && asked != "" {
		got, err := p.get(ctx, p.in(agentapi.UpstreamHTTP), p.host(), "/")
		plain = err == nil
		if plain && got.status != http.StatusBadRequest { // which servers say who want TLS
			return agentapi.UpstreamHTTP, true
		}
	}
	switch {
	case asked != agentapi.UpstreamHTTPS && p.speaksTLS(ctx):
		return agentapi.UpstreamHTTPS, true
	case asked != agentapi.UpstreamH2C && p.speaksHTTP2(ctx):
		return agentapi.UpstreamH2C, true
	}
	return agentapi.UpstreamHTTP, plain
}

// in is the app's target with another protocol.
func (p *prober) in(scheme string) upstream.Target {
	t := p.app.Target()
	t.Scheme, t.Pin, t.Key = scheme, false, ""
	return t
}

// agrees says whether an app agrees over TLS to speak a protocol.
func (p *prober) agrees(ctx context.Context, protocol string) bool {
	conn, err := p.dial(ctx, p.in(agentapi.UpstreamHTTPS), protocol)
	if err != nil {
		return false
	}
	defer conn.Close()
	secure, ok := conn.Conn.(*tls.Conn)
	return ok && secure.ConnectionState().NegotiatedProtocol == protocol
}

// speaksTLS says whether an app does, whatever it speaks in it.
func (p *prober) speaksTLS(ctx context.Context) bool {
	conn, err := p.dial(ctx, p.in(agentapi.UpstreamHTTPS), "http/1.1", "h2")
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// preface begins a connection of HTTP/2 (RFC 9113, 3.4): a fixed text and the frame
// SETTINGS, empty. A server begins with SETTINGS as well.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

func (p *prober) speaksHTTP2(ctx context.Context) bool {
	conn, err := p.dial(ctx, p.in(agentapi.UpstreamHTTP))
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, preface); err != nil {
		return false
	}
	var frame [9]byte // the head of one
	const settings = 4
	_, err = io.ReadFull(conn, frame[:])
	return err == nil && frame[0] == 0 && frame[3] == settings && bytes.Equal(frame[4:], make([]byte, 5))
}
