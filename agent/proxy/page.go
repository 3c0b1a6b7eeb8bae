package proxy

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"porchlight/assets/style"
)

//go:embed assets/page.html
var pageSource string

var (
	styleSheet   = style.Pages()
	icon         = style.Icon()
	pageTemplate = template.Must(template.New("page").Parse(pageSource))
	styleVersion = version(styleSheet)
	iconVersion  = version(icon)
)

func version(asset string) string {
	sum := sha256.Sum256([]byte(asset))
	return hex.EncodeToString(sum[:4])
}

// page is what the one template of this package is drawn from. It needs no
// script; whatever comes from outside is text to it.
type page struct {
	Status int
	Title  string
	Text   string // one or two sentences, also the error of the JSON form
	Fine   string // small print
	Email  string // the visitor's, when the page may say it
	Host   string
	What   string // after the status in the foot, in a word or two

	Retry    int    // seconds until the page loads itself again; 0: it does not
	SignOut  string // action of a form with one button
	Button   string
	Again    bool // that form goes on to signing in
	Link     string
	LinkText string

	More     string // an address for those who want more, under the small print
	MoreText string

	Launcher bool
	Owner    bool // who looks at the launcher
	Auth     string
	Apps     []launcherRow
}

type launcherRow struct {
	Label, Letter, Host, URL string
	Paused                   bool
}

// AuthHost is the host of Auth, the control plane's origin.
func (p page) AuthHost() string { return strings.TrimPrefix(p.Auth, "https://") }

func (p page) Style() string { return pathStyle + "?v=" + styleVersion }
func (p page) Icon() string  { return pathIcon + "?v=" + iconVersion }

func (p page) Foot() string {
	foot := p.Host
	if p.Status != http.StatusOK {
		foot += " · " + strconv.Itoa(p.Status)
	}
	if p.What != "" {
		foot += ", " + p.What
	}
	return strings.TrimPrefix(foot, " · ")
}

// sentence is the JSON form of every refusal.
type sentence struct {
	Error string `json:"error"`
}

// show answers with a page, or with a sentence in JSON for what is no browser.
func (p *Proxy) show(w http.ResponseWriter, r *http.Request, pg page) {
	if pg.Status != http.StatusOK && !wantsPage(r) {
		writeJSON(w, pg.Status, sentence{pg.Text})
		return
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, pg); err != nil {
		p.log.Error("a page could not be drawn", "page", pg.Title, "err", err)
		writeJSON(w, http.StatusInternalServerError, sentence{pg.Text})
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'"+
		p.authOrigin()+"; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(pg.Status)
	w.Write(body.Bytes())
}

// authOrigin is the control plane's origin for form-action, which browsers
// check for the redirects after a form too. It begins with a space.
func (p *Proxy) authOrigin() string {
	u, err := url.Parse(p.config.AuthURL())
	if err != nil || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"") {
		return ""
	}
	return " " + u.Scheme + "://" + u.Host
}

// writeJSON answers with what is ours to say, which any page may read: who is not
// signed in by a cookie learns nothing here, and a cookie opens nothing to a page
// of another origin.
func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil { // strings always encode
		status, raw = http.StatusInternalServerError, []byte(`{"error":"The answer could not be written."}`)
	}
	h := w.Header()
	readable(h)
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(raw)+1))
	w.WriteHeader(status)
	w.Write(append(raw, '\n'))
}

// serveAsset serves what our pages load, the same on every host, published or
// not. It says whether the path was one of those.
func (p *Proxy) serveAsset(w http.ResponseWriter, r *http.Request) bool {
	var kind, body string
	switch r.URL.Path {
	case pathStyle:
		kind, body = "text/css; charset=utf-8", styleSheet
	case pathIcon:
		kind, body = "image/svg+xml", icon
	default:
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.wrongMethod(w, r, "GET, HEAD")
		return true
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
	return true
}
