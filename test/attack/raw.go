//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	patience = 30 * time.Second // for anything that must happen
	// pause is how long a connection may be silent before provoke says that nothing more
	// comes from us. It only moves things on; nothing is judged by it.
	pause = 400 * time.Millisecond
)

// answer is one of those on a connection.
type answer struct {
	status int
	body   string
	header http.Header
}

// secure connects to a host of a computer; every such host is on 127.0.0.1.
func (c *computer) secure(ctx context.Context, host, protocol string) (*tls.Conn, error) {
	return c.secureFrom(ctx, &net.Dialer{Timeout: patience}, host, protocol)
}

func (c *computer) secureFrom(ctx context.Context, dialer *net.Dialer, host, protocol string) (*tls.Conn, error) {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	return c.secureTo(ctx, dialer, net.JoinHostPort("127.0.0.1", port), host, protocol)
}

func (c *computer) secureTo(ctx context.Context, dialer *net.Dialer, addr, host, protocol string) (*tls.Conn, error) {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	raw, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: c.roots, ServerName: name, NextProtos: []string{protocol}})
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// exchange sends requests, the last of which closes, on a connection of their own
// and returns the answers.
func (c *computer) exchange(ctx context.Context, host, request string) ([]answer, error) {
	return c.send(ctx, host, request, patience)
}

// provoke is exchange for bytes that may be half a request: where the connection
// stays silent we end our side.
func (c *computer) provoke(ctx context.Context, host, request string) ([]answer, error) {
	return c.send(ctx, host, request, pause)
}

func (c *computer) send(ctx context.Context, host, request string, pause time.Duration) ([]answer, error) {
	conn, err := c.secure(ctx, host, "http/1.1")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.SetWriteDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, request) // may fail: refused already
	var got bytes.Buffer
	ended := false
	for {
		wait := pause
		if ended {
			wait = patience
		}
		conn.SetReadDeadline(time.Now().Add(wait))
		_, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{conn}, make([]byte, 8<<10))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return answers(got.Bytes()), nil
		}
		if ended {
			return nil, errors.New("the connection stays open")
		}
		_ = conn.CloseWrite() // it may be closed
		ended = true
	}
}

func answers(b []byte) (all []answer) {
	r := bufio.NewReader(bytes.NewReader(b))
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return all
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return all
		}
		all = append(all, answer{resp.StatusCode, string(body), resp.Header})
	}
}
