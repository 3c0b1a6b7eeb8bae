package upstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"unicode"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// dialled is the error of dialling a port nobody listens on.
func dialled(t *testing.T) error {
	t.Helper()
	conn, err := net.Dial("tcp", programs.FreeAddress(t))
	if err == nil {
		conn.Close()
	}
	return err
}

// What net/http says of a malformed answer is explained where the proxy meets it,
// with real answers; here is the rest.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		state  agentapi.Health
		detail string
	}{
		{dialled(t), agentapi.HealthNothing, "Nothing listens there."},
		{upstream.ErrStranger, agentapi.HealthNothing, "Another user's program listens where it should be, or nothing does any more."},
		{upstream.SocketError("/x is no socket."), agentapi.HealthNothing, "/x is no socket."},
		{fmt.Errorf("dial: %w", upstream.ErrKey), agentapi.HealthWrong, "It shows another key than the owner approved."},
		{upstream.ErrNoHTTP2, agentapi.HealthWrong, "It speaks no HTTP/2 over TLS, which gRPC needs."},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, agentapi.HealthSilent, "It takes no connections."},
		{fmt.Errorf("await the answer: %w", context.DeadlineExceeded), agentapi.HealthSilent, "It did not answer in time."},
		{fmt.Errorf("agree on TLS: %w", context.DeadlineExceeded), agentapi.HealthSilent, "It did not answer in time."},
		{fmt.Errorf("agree on TLS: %w", io.EOF), agentapi.HealthWrong, "It did not answer with TLS, and was spoken to with (agree on TLS: EOF)."},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, agentapi.HealthWrong,
			"It did not answer with TLS, and was spoken to with (tls: first record does not look like a TLS handshake)."},
		{errors.New(`malformed MIME header line: "Set-Cookie : session=secret"`), agentapi.HealthWrong, "A header line of its answer is malformed."},
		{io.EOF, agentapi.HealthWrong, "It closed the connection before it answered."},
		{&net.OpError{Op: "read", Err: net.ErrClosed}, agentapi.HealthWrong, "It closed the connection before it answered."},
		{errors.New("http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"),
			agentapi.HealthWrong, "It answered with HTTP/1.1, and was spoken to in HTTP/2"},
		{errors.New("odd\x1b[31m \u202e\n" + strings.Repeat("x", 1000)), agentapi.HealthWrong, `Its answer could not be read (odd\x1b[31m \u202e\nxxx`},
	} {
		why := upstream.Explain(c.err)
		if why.State != c.state || !strings.HasPrefix(why.Detail, c.detail) {
			t.Errorf("%v: %+v", c.err, why)
		}
		if len(why.Detail) > 400 || strings.ContainsFunc(why.Detail, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%v: %q", c.err, why.Detail)
		}
		if strings.Contains(why.Detail, "secret") || !strings.EqualFold(why.Sentence(), why.Reason+".") {
			t.Errorf("%v: %q, %q", c.err, why.Detail, why.Sentence())
		}
		if why.Reason == "" || why.Reason[0] < 'a' || why.Reason[0] > 'z' {
			t.Errorf("%v: %q", c.err, why.Reason)
		}
	}
}

// However an answer is cut up on its way, one of HTTP is taken for that.
func TestSniff(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 200 OK\r\n\r\n"
	for n := range len(answer) {
		if err := upstream.Sniff([]byte(answer[:n])); err != nil {
			t.Errorf("%q: %v", answer[:n], err)
		}
	}
	for first, want := range map[string]agentapi.Health{
		"\x15": agentapi.HealthHTTPS, "\x15\x03": agentapi.HealthHTTPS, "\x16\x03\x01\x00": agentapi.HealthHTTPS, "\x15\x04": agentapi.HealthWrong,
		"\x00\x00\x12\x04": agentapi.HealthH2C, "\x00\x00\x12\x07\x00": agentapi.HealthH2C, "\x00\x00\x12": agentapi.HealthWrong,
		"<html>": agentapi.HealthWrong, "HTP": agentapi.HealthWrong, "h": agentapi.HealthWrong,
	} {
		err := upstream.Sniff([]byte(first))
		if err == nil || upstream.Explain(err).State != want {
			t.Errorf("%q: %v, want %s", first, err, want)
		}
	}
	for first, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.6\r\nmore":    "(SSH-2.0-OpenSSH_9.6).",
		"\r\nHTTP/1.1 200 OK\r\n":        `(\r\nHTTP/1.1 200 OK\r\n).`,
		strings.Repeat("x", 61) + "\r\n": "(" + strings.Repeat("x", 60) + ").",
	} {
		if got := upstream.Explain(upstream.Sniff([]byte(first))).Detail; got != "Its answer does not begin as HTTP does "+want {
			t.Errorf("%q: %s", first, got)
		}
	}
}
