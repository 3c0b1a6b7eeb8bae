package health

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

// page is what was read of an answer.
type page struct {
	status int
	header http.Header
	start  []byte // of its body
	mcp    spoken // where an app is said to speak MCP
}

// request is what is asked of an app beyond where.
type request struct {
	method string // GET when empty
	header http.Header
	body   string
}

// get asks for a path.
func (p *prober) get(ctx context.Context, t upstream.Target, host, path string) (page, error) {
	return p.ask(ctx, t, host, path, request{header: http.Header{"Accept": {"*/*"}}})
}

// ask sends a request on a connection of its own. It follows nothing.
func (p *prober) ask(ctx context.Context, t upstream.Target, host, path string, r request) (page, error) {
	conn, err := p.dial(ctx, t)
	if err != nil {
		return page{}, err
	}
	defer conn.Close()
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+host+path, strings.NewReader(r.body))
	if err != nil {
		return page{}, fmt.Errorf("ask an app: %w", err)
	}
	req.Header = r.header.Clone()
	req.Header.Set("User-Agent", userAgent)
	if p.app.toldAddress() {
		req.Header["X-Forwarded-Proto"] = []string{"https"}
		req.Header["X-Forwarded-Host"] = []string{p.app.host}
	}
	ask := p.askHTTP1
	if t.Scheme == agentapi.UpstreamH2C {
		ask = askHTTP2
	}
	res, err := ask(conn, req)
	switch {
	case err != nil && conn.left == 0:
		return page{}, errLong
	case err != nil:
		return page{}, err
	}
	defer res.Body.Close()
	start, err := p.readStart(ctx, conn, res.Body)
	return page{status: res.StatusCode, header: res.Header, start: start}, err
}

// readStart reads the beginning of a body: as much as comes soon. One that ends too
// early is an error, one that is too long or too slow is not.
func (p *prober) readStart(ctx context.Context, conn net.Conn, body io.Reader) ([]byte, error) {
	_ = conn.SetReadDeadline(p.soon(ctx))
	start, err := io.ReadAll(io.LimitReader(body, maxRead))
	if errors.Is(err, error(errLong)) || timedOut(err) {
		err = nil
	}
	return start, err
}

// soon is when the rest of something is waited for no longer.
func (p *prober) soon(ctx context.Context) time.Time {
	until := time.Now().Add(p.bodyFor)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		return end
	}
	return until
}

// peekLine is what comes up to a line's end, or as much as is told of it.
func peekLine(r *bufio.Reader) []byte {
	for {
		line, _ := r.Peek(r.Buffered())
		if len(line) >= upstream.MaxLine || bytes.IndexByte(line, '\n') >= 0 {
			return line
		}
		if _, err := r.Peek(len(line) + 1); err != nil {
			return line
		}
	}
}

// askHTTP1 reads what net/http reads of an answer, and refuses what cannot be passed
// on.
func (p *prober) askHTTP1(conn net.Conn, req *http.Request) (*http.Response, error) {
	req.Close = true
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	first, err := r.Peek(len("HTTP/"))
	switch other := upstream.Sniff(first); {
	case other != nil:
		_ = conn.SetReadDeadline(p.soon(req.Context()))
		return nil, upstream.Sniff(peekLine(r))
	case len(first) == 0:
		return nil, err
	}
	for {
		res, err := http.ReadResponse(r, req)
		switch {
		case err != nil:
			return nil, err
		case res.StatusCode < 100:
			return nil, upstream.ErrStatus
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, upstream.ErrUnasked101
		case res.StatusCode >= 200:
			return res, nil
		}
	}
}

// askHTTP2 sends the request in HTTP/2 without TLS. A server that refuses the request
// alone speaks it.
func askHTTP2(conn net.Conn, req *http.Request) (*http.Response, error) {
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, MaxResponseHeaderBytes: maxRead}
	t.Protocols.SetUnencryptedHTTP2(true)
	taken := false
	t.DialContext = func(context.Context, string, string) (net.Conn, error) {
		if taken {
			return nil, errors.New("a probe has one connection")
		}
		taken = true
		return conn, nil
	}
	res, err := t.RoundTrip(req)
	if err != nil && strings.Contains(err.Error(), "stream error") {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	return res, err
}
