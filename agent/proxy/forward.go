package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/proxy/gate"
	"porchlight/agent/upstream"
)

const copyBuffer = 32 << 10 // bytes moved at a time, each way

// newReverse makes the way of all requests that forwardDirect does not take.
func (p *Proxy) newReverse() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.apps,
		FlushInterval:  -1,
		BufferPool:     buffers,
		ModifyResponse: p.modifyReverse,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			p.forwardFailed(w, r, r.Context().Value(visitKey{}).(*visit), err)
		},
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
}

// patienceWith an app is how long a page waits for its first word.
func (p *Proxy) patienceWith(app *engine.App) time.Duration {
	if app.Options.FirstByte > 0 {
		return time.Duration(app.Options.FirstByte) * time.Second
	}
	return p.config.Patience
}

// forward hands the request to the app and its answer back. All that follows
// happens with access decided and the visit registered.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, v *visit) {
	v.tries, _ = cookieValue(r.Header, p.cookies.tries)
	v.compared = v.vhost.compared(r)
	gate.AwaitBody(w, r)
	if loadsPage(r) {
		v.patience = p.patienceWith(&v.vhost.app)
	}
	if r.Body != nil && r.Body != http.NoBody {
		v.fields = gate.CountFields(r)
	}
	v.to = interim{ResponseWriter: w, p: p, visit: v}
	if v.mayGoDirect(r) {
		p.waits.add(v)
		defer p.waits.remove(v)
		p.forwardDirect(&v.to, r, v)
	} else {
		v.watch(0) // net/http knows it longer than this
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).EnableFullDuplex() // as sending.attempt does
		}
		p.reverse.ServeHTTP(&v.to, r.WithContext(v))
	}
	if v.shut.Load() {
		// Nothing more may pass on this connection or stream, not even an end
		// that makes half an answer look whole.
		panic(http.ErrAbortHandler)
	}
}

// rewrite makes the app's request of the visitor's. Hop-by-hop headers are gone
// already, so nothing named in Connection can take ours away.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	v := pr.Out.Context().Value(visitKey{}).(*visit)
	out := pr.Out
	out.URL.Scheme = "http"
	out.URL.Host = poolOf(&v.vhost.app).String()
	out.URL.User = nil
	out.URL.RawQuery = pr.In.URL.RawQuery // the app's to parse, odd as it may be
	out.Host = pr.In.Host
	own := p.identifyTo(out, pr.In.RemoteAddr, pr.In.Host, v)
	out.Trailer = cleanTrailer(pr.In.Trailer, own)
	if out.Trailer != nil {
		out.ContentLength = -1 // trailers need chunks
	}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = &requestBody{ReadCloser: out.Body, visit: v, in: pr.In, trailer: out.Trailer}
	}
}

// identifyTo makes the header of the app's request say who asks, by us and by
// nobody else. Hop-by-hop fields are gone from it. from and host are what the visitor's
// request had; own is the app's own identity header, or empty.
func (p *Proxy) identifyTo(out *http.Request, from, host string, v *visit) (own string) {
	if (v.id.GrantID != "" || v.id.PasswordID != "" && !v.id.ByKey) && len(out.Header["Authorization"]) == 1 {
		delete(out.Header, "Authorization") // what was let in by; strip would read it again
	}
	strip(out.Header)
	if own = identityHeader(&v.vhost.app.Options); own != "" {
		stripIdentity(out.Header, own)
	}
	v.five = fiveOf(v)
	applyOptions(out, from, host, v, own)
	if v.vhost.app.Options.IdentityToken && p.config.Identity != nil {
		p.addToken(out.Header, v)
	}
	return own
}

var errTooManyFields = errors.New("the request has too many fields, its trailers counted")

// requestBody passes a visitor's body on. At its end it fills in the trailers
// that were declared and are clean; any other, named late, goes no further, as
// it would not over HTTP/2 either. A transport may read it when the visitor has been
// answered already and the next request has the header.
type requestBody struct {
	io.ReadCloser
	visit   *visit
	in      *http.Request
	trailer http.Header
	closed  atomic.Bool // by whoever sends it, who reads on for a moment
}

func (b *requestBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		if gate.TooManyTrailers(b.visit.fields, b.in.Trailer) {
			b.visit.tooMany.Store(true)
			return n, errTooManyFields
		}
		for name := range b.trailer {
			b.trailer[name] = b.in.Trailer[name]
		}
	case !b.closed.Load() && !errors.Is(err, http.ErrBodyReadAfterClose):
		b.visit.bodyDied.Store(true)
	}
	return n, err
}

// modifyResponse judges and changes the head of an app's answer to r.
func (p *Proxy) modifyResponse(v *visit, r *http.Request, res *http.Response) error {
	v.delivery.answered(res.StatusCode) // the app has it, whether or not access has ended
	if !v.hears() {
		return context.DeadlineExceeded // forwardFailed says so
	}
	if res.StatusCode < 100 {
		return upstream.ErrStatus // which net/http reads, and panics to write
	}
	if res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified {
		// Over HTTP/2 a length says that so much comes, and none of these has a body.
		delete(res.Header, "Content-Length")
	}
	if p.config.OnAnswered != nil {
		p.config.OnAnswered(v.vhost.app.ID)
	}
	p.cleanResponse(res.Header, v.vhost.host)
	p.keepToHTTPS(res.Header, &v.vhost)
	if v.client {
		dropCORS(res.Header)
		readable(res.Header)
	}
	if v.id.ByBrowser() && !v.vhost.app.Options.AllowCrossOrigin && res.StatusCode != http.StatusSwitchingProtocols {
		keepApart(res.Header)
	}
	if (v.vhost.toPublic(res.Header) || v.vhost.leadsNowhere(r, res)) && p.config.OnHint != nil {
		p.config.OnHint(v.vhost.app.ID)
	}
	if v.compared != "" && p.config.OnCompared != nil {
		p.config.OnCompared(v.vhost.app.ID, v.compared, res.StatusCode)
	}
	if v.renew != "" {
		setCookie(res.Header, p.cookies.session, v.renew, access.SessionLife)
		p.markApp(res.Header, v.vhost.app.ID)
	}
	return nil
}

// leadsNowhere says whether an app redirects to the https:// address it was asked at, as
// those do that want HTTPS and do not know that they are reached by it. Who sets a cookie
// on the way may let its bearer in the next time.
func (vhost *virtualHost) leadsNowhere(r *http.Request, res *http.Response) bool {
	to := res.Header["Location"]
	return len(to) == 1 && res.StatusCode >= 300 && res.StatusCode < 400 && len(res.Header["Set-Cookie"]) == 0 &&
		to[0] == vhost.origin+r.URL.RequestURI()
}

// compared says what of a visitor's request an app may compare with the address that it
// believes to have; empty for nothing.
func (vhost *virtualHost) compared(r *http.Request) agentapi.Compared {
	origin := r.Header["Origin"]
	switch {
	case len(r.Header["Upgrade"]) > 0: // what is left of it is to a WebSocket
		return agentapi.ComparedWebSocket
	case len(origin) != 1 || origin[0] != vhost.origin:
		return ""
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/x-www-form-urlencoded", "multipart/form-data", "text/plain":
		return agentapi.ComparedForm
	}
	return agentapi.ComparedCall
}

// interim cleans the headers of 1xx answers, which a ReverseProxy passes on by
// itself as they come.
type interim struct {
	http.ResponseWriter
	p     *Proxy
	visit *visit
}

func (w *interim) WriteHeader(status int) {
	h := w.Header()
	w.visit.note.answered(status)
	if status < 200 {
		w.p.cleanResponse(h, w.visit.vhost.host)
		w.visit.vhost.toPublic(h) // 103 has links
	} else if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // an app that says nothing of its type is not guessed at
	}
	w.ResponseWriter.WriteHeader(status)
}

// Hijack takes a WebSocket's connection over, which carries no more requests.
func (w *interim) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.visit.conn.Upgraded()
	w.visit.note.opened()
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController flush.
func (w *interim) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// buffers are what bodies are copied with. The pool holds pointers to arrays, which
// go in and out of an interface without an allocation.
var buffers = &bufferPool{}

type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) Get() []byte {
	if buf, ok := b.pool.Get().(*[copyBuffer]byte); ok {
		return buf[:]
	}
	return make([]byte, copyBuffer)
}

func (b *bufferPool) Put(buf []byte) { b.pool.Put((*[copyBuffer]byte)(buf)) }

func fiveOf(v *visit) five {
	return five{clean(v.id.AccountID), clean(v.decision.Email), clean(v.vhost.root.Name), clean(v.vhost.app.Label), clean(string(v.decision.Role))}
}

// modifyReverse is modifyResponse where a ReverseProxy reads the body and keeps to
// itself what was wrong with it.
func (p *Proxy) modifyReverse(res *http.Response) error {
	v := res.Request.Context().Value(visitKey{}).(*visit)
	if res.StatusCode == http.StatusSwitchingProtocols && len(res.Request.Header["Upgrade"]) == 0 {
		return upstream.ErrUnasked101
	}
	if err := validNames(res.Header); err != nil {
		return err
	}
	if err := p.modifyResponse(v, res.Request, res); err != nil {
		return err
	}
	if res.StatusCode != http.StatusSwitchingProtocols && res.Body != http.NoBody {
		res.Body = &answerBody{res.Body, p, v}
	}
	return nil
}

type answerBody struct {
	io.ReadCloser
	p *Proxy
	v *visit
}

func (b *answerBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		b.p.brokeOff(b.v, err)
	}
	return n, err
}
