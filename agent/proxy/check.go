package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/assets/style"
	"porchlight/internal/words"
)

// Whether a browser trusts this computer's own authority is seen by having it load a
// page of ours. That alone shows nothing, because people can click a warning away. So
// the page has a picture at another host, whose name is new: for that one nobody has
// clicked anything away, and a browser that does not trust the authority asks nobody
// about a picture. It does not load it.
//
// A browser that refuses says so too: it ends the handshake with an alert about the
// certificate, and that the name is of the check, nobody else knows.

const (
	pathCheck = ourPath + "check/"
	// checkFor is how long a check goes on. The page that leads to it lasts as long.
	checkFor = time.Minute
)

// check is one look at a browser's trust. One at a time is under way.
type check struct {
	page, picture oneTime
	pictureToken  string
	ends          time.Time

	mu      sync.Mutex
	state   agentapi.TrustCheck // guarded by mu
	opened  time.Time           // when the page was loaded; guarded by mu
	changed chan struct{}       // closed and replaced at a change; guarded by mu
}

// oneTime is an address that works once: a host of ours that nobody knows, and a token.
type oneTime struct {
	host string // name under the root host
	sum  [32]byte
	used atomic.Bool
}

func (o *oneTime) draw() (token string) {
	var raw [32]byte
	rand.Read(raw[:])
	token = base64.RawURLEncoding.EncodeToString(raw[:])
	o.host, o.sum = "check-"+strings.ToLower(rand.Text()), sha256.Sum256([]byte(token))
	return token
}

// accepts says whether a token is the one, for the first time.
func (o *oneTime) accepts(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], o.sum[:]) == 1 && !o.used.Swap(true)
}

// BeginCheck makes the link of a page that shows whether the browser which loads it
// trusts this computer, once and within a minute. It signs nobody in. A check before
// it is over.
func (p *Proxy) BeginCheck() agentapi.TrustCheck {
	root := p.config.Root()
	c := &check{ends: p.now().Add(checkFor), changed: make(chan struct{})}
	token := c.page.draw()
	c.pictureToken = c.picture.draw()
	c.state = agentapi.TrustCheck{State: agentapi.CheckWaiting, Host: c.page.host + "." + root.Host}
	p.checking.Store(c)
	begun := c.state
	begun.URL = originOf(c.page.host, root) + pathCheck + token
	return begun
}

// AwaitCheck is how the check under way stands, as soon as that is otherwise than it
// was, or when ctx ends.
func (p *Proxy) AwaitCheck(ctx context.Context, was string) agentapi.TrustCheck {
	c := p.checking.Load()
	if c == nil {
		return agentapi.TrustCheck{State: agentapi.CheckNone}
	}
	timer := time.NewTimer(c.ends.Sub(p.now()))
	defer timer.Stop()
	for {
		state, changed := c.look()
		if state.State != was || ctx.Err() != nil {
			return state
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-timer.C:
			c.become(agentapi.CheckNone)
		}
	}
}

func (c *check) look() (agentapi.TrustCheck, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.changed
}

// become notes how it stands. What is proven stays so, and a refusal is taken back by
// a proof alone.
func (c *check) become(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == agentapi.CheckOpened {
		c.opened = time.Now() // also of a page past a warning: a proof may come all the same
	}
	switch was := c.state.State; {
	case was == state, was == agentapi.CheckProven:
		return
	case was == agentapi.CheckRefused && state != agentapi.CheckProven:
		return
	case was == agentapi.CheckNone:
		return // too late
	case state == agentapi.CheckProven:
		c.state.Milliseconds = max(1, time.Since(c.opened).Milliseconds())
	}
	c.state.State = state
	close(c.changed)
	c.changed = make(chan struct{})
}

// checked answers a request for the check under way; nil where it is for anything else,
// which then finds nothing at such an address, as everywhere.
func (p *Proxy) checked(r *http.Request, host string) *answer {
	c := p.checking.Load()
	token, ok := strings.CutPrefix(r.URL.Path, pathCheck)
	if c == nil || !ok || r.Method != http.MethodGet || !p.now().Before(c.ends) {
		return nil
	}
	root := p.config.Root()
	name, under := labelOf(host, root)
	switch {
	case !under || !samePort(r.Host, root.Host):
		return nil
	case name == c.page.host && c.page.accepts(token):
		to := originOf(c.picture.host, root) + pathCheck + c.pictureToken
		c.become(agentapi.CheckOpened)
		return checkPage(to, originOf(c.picture.host, root), words.Accepted(r.Header.Get("Accept-Language")))
	case name == c.picture.host && c.picture.accepts(token):
		c.become(agentapi.CheckProven)
		return &answer{
			header: http.Header{"Content-Type": {"image/svg+xml"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}},
			send:   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(style.Icon())) },
		}
	}
	return nil
}

// refusedTLS is told of each handshake that the other side ended because of our
// certificate.
func (p *Proxy) refusedTLS(serverName string) {
	c := p.checking.Load()
	if c == nil {
		return
	}
	name, ok := labelOf(serverName, p.config.Root())
	if ok && (name == c.page.host || name == c.picture.host) {
		c.become(agentapi.CheckRefused)
	}
}

var checkTemplate = template.Must(template.New("check").Parse(fmt.Sprintf(`<!doctype html>
<html lang="{{.Lang}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<link rel="icon" href="%s">
<link rel="stylesheet" href="%s">
</head>
<body>
<main class="sheet">
<img src="{{.Picture}}" alt="" width="48" height="48">
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</main>
</body>
</html>
`, pathIcon+"?v="+iconVersion, pathStyle+"?v="+styleVersion)))

// checkPage claims nothing: what was found, the window says.
func checkPage(picture, origin string, l words.Language) *answer {
	var body bytes.Buffer
	err := checkTemplate.Execute(&body, map[string]string{
		"Lang": l.Tag(), "Picture": picture,
		"Title": l.Say("This page is from this computer"),
		"Text":  l.Say("Porchlight’s window goes on by itself. You can close this page."),
	})
	if err != nil { // strings always fit
		return nothingHere()
	}
	return &answer{
		header: http.Header{
			"Content-Type":            {"text/html; charset=utf-8"},
			"Content-Security-Policy": {"default-src 'none'; style-src 'self'; img-src 'self' " + origin + "; base-uri 'none'; frame-ancestors 'none'"},
			"Referrer-Policy":         {"no-referrer"},
			"X-Content-Type-Options":  {"nosniff"},
			"Cache-Control":           {"no-store"},
		},
		send: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body.Bytes()) },
	}
}
