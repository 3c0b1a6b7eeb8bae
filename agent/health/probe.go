package health

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/internal/words"
)

const (
	// askFor bounds a probe, with everything it tries.
	askFor = 2 * time.Second
	// maxRead is how much of the answers on a connection is read, in bytes.
	maxRead = 64 << 10
	// bodyFor is how long the rest of an answer is waited for.
	bodyFor = 500 * time.Millisecond
	// maxPath is how long an address is that a redirect is followed to, in bytes.
	maxPath = 2000
	// userAgent says to the app who asks.
	userAgent = "Porchlight-probe"
)

// result of a probe.
type result struct {
	verdict
	conclusive bool // whether the verdict says anything
	sent       bool // whether the app may have got something of it
}

// prober asks one app once.
type prober struct {
	app     asked
	checks  upstream.Checks
	bodyFor time.Duration
	sent    bool
}

// probe asks for the first page as visitors do, or at the path of MCP as assistants do, one redirect of the app to itself
// included, and where that is refused or fails, looks whether one of the options would
// help: as localhost, with TLS, in HTTP/2. Of an app that is reached by TCP only who listens
// is looked at.
func (h *Health) probe(ctx context.Context, app asked, checks upstream.Checks) result {
	if app.TCP { // what it would make of HTTP, or of a connection, nobody knows
		if h.cfg.Socket(app.Target()) == 0 {
			return result{verdict: nothing(app), conclusive: true}
		}
		return result{verdict: answers(app, 0), conclusive: true}
	}
	ctx, cancel := context.WithTimeout(ctx, h.askFor)
	defer cancel()
	p := &prober{app: app, checks: checks, bodyFor: h.bodyFor}
	v, conclusive := p.judge(ctx)
	return result{verdict: v, conclusive: conclusive, sent: p.sent}
}

func (p *prober) judge(ctx context.Context) (v verdict, conclusive bool) {
	got, err := p.first(ctx, p.host())
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
	if p.app.Target().Scheme == agentapi.UpstreamHTTPS && !p.agrees(ctx, "http/1.1") && p.agrees(ctx, "h2") {
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

// refusal says whether a status may mean that the host was not liked. 401 is what some
// answer who want to know everybody that does not come by localhost.
func refusal(status int) bool {
	return status == http.StatusUnauthorized || unwanted(status)
}

// unwanted says whether a status is that of a request that an app does not take.
func unwanted(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusForbidden || status == http.StatusMisdirectedRequest
}

// first asks for the first page: where that leads to another one of the app, as / does to
// /login, that one is what visitors see. An app that speaks MCP is asked where it does.
func (p *prober) first(ctx context.Context, host string) (page, error) {
	if p.app.Options.MCP != "" {
		return p.mcp(ctx, host)
	}
	got, err := p.get(ctx, p.app.Target(), host, "/")
	if err != nil {
		return got, err
	}
	if to := p.onward(got); to != "" {
		if next, err := p.get(ctx, p.app.Target(), host, to); err == nil {
			got.status, got.start = next.status, append(append(got.start, '\n'), next.start...)
		}
	}
	return got, nil
}

// onward is where an answer leads to at the app itself, and not to the first page again;
// empty for nowhere.
func (p *prober) onward(got page) string {
	to, err := url.Parse(got.header.Get("Location"))
	if err != nil || got.status < 300 || got.status > 399 || len(got.header["Location"]) != 1 {
		return ""
	}
	port := ":" + strconv.Itoa(p.app.Port)
	own := []string{"", p.app.host, p.host(), "localhost" + port, "127.0.0.1" + port, "[::1]" + port}
	path := (&url.URL{Path: "/"}).ResolveReference(to).RequestURI()
	absolute := to.Host != "" && (to.Scheme == "" || to.Scheme == "http" || to.Scheme == "https")
	if !slices.Contains(own, strings.ToLower(to.Host)) || !absolute && to.Scheme != "" || path == "/" || len(path) > maxPath {
		return ""
	}
	return path
}

// refused is what follows from a first page that was refused. An app that is still at
// work on the page it is asked for as localhost, as a development server is that
// compiles, did not refuse that one. Servers that speak TLS answer 400 to whoever does
// not.
func (p *prober) refused(ctx context.Context, got page) verdict {
	if p.host() == p.app.host {
		local, err := p.first(ctx, p.localhost())
		switch {
		case err == nil && !refusal(local.status):
			return refuses(p.app, got.status, "takes")
		case got.status != http.StatusBadRequest && got.status != http.StatusUnauthorized && timedOut(err):
			return refuses(p.app, got.status, "does not refuse")
		}
	}
	if got.status == http.StatusBadRequest && p.app.Target().Plain() && p.speaksTLS(ctx) {
		return speaks(p.app, agentapi.UpstreamHTTPS)
	}
	return p.answered(got)
}

// answered looks whether the app knows the address that visitors have of it.
func (p *prober) answered(got page) verdict {
	if p.app.Options.MCP != "" {
		return answersMCP(p.app.Options.MCP, got)
	}
	v := answers(p.app, got.status)
	to, err := url.Parse(got.header.Get("Location"))
	toOwn := err == nil && strings.EqualFold(to.Host, p.app.host)
	onward := toOwn && to.Scheme == "https" && (strings.Trim(to.RequestURI(), "/") != "" || len(got.header["Set-Cookie"]) > 0)
	unknown := toOwn && !onward || names(got.start, "http://"+p.app.host)
	if p.app.toldAddress() {
		v.vain = unknown
	} else if unknown && !v.note {
		v.detail, v.said, v.option = unaware, words.Text{words.Plain(unaware)}, publicAddress
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
	return p.app.host
}

func (p *prober) localhost() string { return "localhost:" + strconv.Itoa(p.app.Port) }
