package health

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
)

const (
	// askFor bounds a probe, with everything it tries.
	askFor = 2 * time.Second
	// maxRead is how much of the answers on a connection is read, in bytes.
	maxRead = 64 << 10
	// bodyFor is how long the rest of an answer is waited for.
	bodyFor = 500 * time.Millisecond
	// userAgent says to the app who asks.
	userAgent = "Porchlight-probe"
)

// result of a probe.
type result struct {
	verdict
	told bool // whether the verdict says anything
	sent bool // whether the app may have got something of it
}

// prober asks one app once.
type prober struct {
	app    App
	checks upstream.Checks
	sent   bool
}

// page is what was read of a first page.
type page struct {
	status int
	header http.Header
	start  []byte // of its body
}

// probe asks for the first page as visitors do, and where that is refused or fails,
// looks whether one of the options would help: as localhost, with TLS, in HTTP/2.
func probe(ctx context.Context, app App, checks upstream.Checks) result {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	p := &prober{app: app, checks: checks}
	v, told := p.judge(ctx)
	return result{verdict: v, told: told, sent: p.sent}
}

func (p *prober) judge(ctx context.Context) (v verdict, told bool) {
	got, err := p.get(ctx, p.app.Target, p.host())
	switch {
	case errors.Is(err, upstream.ErrStranger):
		return v, false // whoever listens is not who was approved, which the engine tells
	case err == nil && !refusal(got.status):
		return p.answered(got), true
	case err == nil:
		return p.refused(ctx, got), true
	}
	why := upstream.Explain(err)
	switch {
	case why.State == agentapi.HealthNothing:
		return failed(p.app, agentapi.HealthNothing, why.Detail), true
	case timedOut(err) || why.State == agentapi.HealthSilent:
		return silent(p.app), true
	}
	if p.app.Target.Scheme == agentapi.UpstreamHTTPS && !p.agrees(ctx, "http/1.1") && p.agrees(ctx, "h2") {
		return answersRPC(p.app), true
	}
	if scheme, ok := p.otherScheme(ctx); ok {
		return speaks(p.app, scheme), true
	}
	return failed(p.app, agentapi.HealthWrong, why.Detail), true
}

func timedOut(err error) bool {
	timeout, is := errors.AsType[net.Error](err)
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || is && timeout.Timeout()
}

// refusal says whether a status may mean that the host was not liked.
func refusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusForbidden || status == http.StatusMisdirectedRequest
}

// refused is what follows from a first page that was refused. Servers that speak TLS
// answer 400 to whoever does not.
func (p *prober) refused(ctx context.Context, got page) verdict {
	if p.host() == p.app.Host {
		local, err := p.get(ctx, p.app.Target, p.localhost())
		if err == nil && !refusal(local.status) {
			return refuses(p.app, got.status)
		}
	}
	if got.status == http.StatusBadRequest && p.app.Target.Plain() && p.speaksTLS(ctx) {
		return speaks(p.app, agentapi.UpstreamHTTPS)
	}
	return p.answered(got)
}

// answered looks whether the app knows the address that visitors have of it.
func (p *prober) answered(got page) verdict {
	v := answers(p.app, got.status)
	if p.app.toldAddress() {
		return v
	}
	to, err := url.Parse(got.header.Get("Location"))
	toOwn := err == nil && strings.EqualFold(to.Host, p.app.Host)
	onward := toOwn && to.Scheme == "https" && (strings.Trim(to.RequestURI(), "/") != "" || len(got.header["Set-Cookie"]) > 0)
	if toOwn && !onward || names(got.start, "http://"+p.app.Host) {
		v.detail, v.option = unaware, publicAddress
	}
	return v
}

// names says whether a text has an address in it, and not just the beginning of
// another host.
func names(text []byte, address string) bool {
	for {
		i := bytes.Index(text, []byte(address))
		if i < 0 {
			return false
		}
		text = text[i+len(address):]
		if len(text) == 0 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:", rune(text[0])) {
			return true
		}
	}
}

// otherScheme finds the protocol an app speaks that is not the one it was asked in.
func (p *prober) otherScheme(ctx context.Context) (scheme string, ok bool) {
	asked := p.app.Target.Scheme
	plain := false
	if asked != agentapi.UpstreamHTTP && asked != "" {
		got, err := p.get(ctx, p.in(agentapi.UpstreamHTTP), p.host())
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
	t := p.app.Target
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

// dial connects, for as long as the probe may take.
func (p *prober) dial(ctx context.Context, t upstream.Target, protocols ...string) (*shortConn, error) {
	checks := p.checks
	checks.Peer = func(peer agentapi.Listener) bool {
		ok := p.checks.Peer == nil || p.checks.Peer(peer)
		p.sent = p.sent || ok
		return ok
	}
	conn, err := t.Dial(ctx, checks, protocols...)
	if err != nil {
		return nil, err
	}
	if until, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(until) // of a connection that is gone, reading tells
	}
	return &shortConn{Conn: conn, left: maxRead}, nil
}

// shortConn is a connection on which no more is read than a probe may.
type shortConn struct {
	net.Conn
	left int
}

var errLong = &upstream.Broken{State: agentapi.HealthWrong, Reason: "the head of its answer is longer than 64 KiB"}

func (c *shortConn) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, errLong
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// host is what visitors' requests name, by the options.
func (p *prober) host() string {
	switch o := p.app.Options; {
	case o.HostHeader != "":
		return o.HostHeader
	case o.LocalhostHost:
		return p.localhost()
	}
	return p.app.Host
}

func (p *prober) localhost() string { return "localhost:" + strconv.Itoa(p.app.Target.Port) }

// get asks for / on a connection of its own. It follows nothing.
func (p *prober) get(ctx context.Context, t upstream.Target, host string) (page, error) {
	conn, err := p.dial(ctx, t)
	if err != nil {
		return page{}, err
	}
	defer conn.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		return page{}, fmt.Errorf("ask for the first page: %w", err)
	}
	req.Header = http.Header{"User-Agent": {userAgent}, "Accept": {"*/*"}}
	if p.app.toldAddress() {
		req.Header["X-Forwarded-Proto"] = []string{"https"}
		req.Header["X-Forwarded-Host"] = []string{p.app.Host}
	}
	ask := askHTTP1
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
	start, err := readStart(ctx, conn, res.Body)
	return page{res.StatusCode, res.Header, start}, err
}

// readStart reads the beginning of a body: as much as comes soon. One that ends too
// early is an error, one that is too long or too slow is not.
func readStart(ctx context.Context, conn net.Conn, body io.Reader) ([]byte, error) {
	until := time.Now().Add(bodyFor)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	_ = conn.SetReadDeadline(until)
	start, err := io.ReadAll(io.LimitReader(body, maxRead))
	if errors.Is(err, error(errLong)) || timedOut(err) {
		err = nil
	}
	return start, err
}

// askHTTP1 reads what net/http reads of an answer, and refuses what cannot be passed
// on.
func askHTTP1(conn net.Conn, req *http.Request) (*http.Response, error) {
	req.Close = true
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	first, err := r.Peek(len("HTTP/"))
	switch other := upstream.Sniff(first); {
	case other != nil:
		return nil, other
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
