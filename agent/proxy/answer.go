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

	"porchlight/agent/proxy/gate"
	"porchlight/assets/style"
	"porchlight/internal/noaccess"
	"porchlight/internal/words"
)

//go:embed assets/page.html
var pageSource string

var (
	styleSheet   = style.Pages()
	icon         = style.Icon()
	styleVersion = version(styleSheet)
	iconVersion  = version(icon)

	// pageTemplates has the one template in each language.
	pageTemplates = words.InEach(func(l words.Language) *template.Template {
		return l.FoldHTML(template.Must(template.Must(template.New("page").Funcs(l.Funcs()).Parse(pageSource)).Parse(noaccess.Source + devicesSource)))
	})
)

func version(asset string) string {
	sum := sha256.Sum256([]byte(asset))
	return hex.EncodeToString(sum[:4])
}

// answer is what the proxy says itself in place of an app: a refusal, a step of
// signing in, or one of our own pages. Whoever returns one has said all there is
// to say; write alone sends it.
//
// The exported fields are what the one template of this package is drawn from. It
// needs no script, and only the launcher has one; whatever comes from outside is text to it.
type answer struct {
	Status int
	Title  words.Sentence // zero: no body, the status and the header say all
	Text   words.Text     // one or two sentences, in English also the error of the JSON form
	Fine   words.Text     // small print
	Email  string         // the visitor's, when the page may say it
	Host   string
	What   string // after the status in the foot, in a word or two

	Retry    int    // seconds until the page loads itself again; 0: it does not
	SignOut  string // action of a form with one button
	Button   words.Sentence
	Again    bool // that form goes on to signing in
	Link     string
	LinkText words.Sentence

	More     string // an address for those who want more, under the small print
	MoreText words.Sentence

	Own string // of a launcher: where its visitor makes certificates; empty for nowhere

	NoAccess *noaccess.Page // in place of all above; nil for not
	Ask      *noaccess.Form // of a launcher that has nothing to show
	Short    string         // name of the computer, whom it asks

	Devices *devicesPage // likewise, each; nil for not
	Made    *madePage
	Fetch   *fetchPage

	Launcher bool
	Owner    bool   // who looks at the launcher
	Sharer   string // the owner's address, to whoever else looks; empty where it is not known
	Called   string // what the owner calls themselves; never without Sharer
	Auth     string
	Apps     []launcherRow
	Script   string // has the browser keep worker, both addresses; empty for not
	worker   string
	Times    string // address of what says times in the reader's own; empty for not

	header  http.Header      // fields besides those that every page has
	close   bool             // the connection ends with this answer
	anyName bool             // it is the same, but for the name, where no app is
	json    any              // sent in place of a page, to browsers too; nil for not
	send    http.HandlerFunc // sends the whole answer in place of all above; nil for not
}

type launcherRow struct {
	Label, Letter, Host, URL string
	Paused                   bool
	End                      time.Time  // zero for never
	Until                    words.Text // the same in words
}

// AuthHost is the host of Auth, the control plane's origin.
func (a *answer) AuthHost() string { return strings.TrimPrefix(a.Auth, "https://") }

func (a *answer) Style() string { return pathStyle + "?v=" + styleVersion }
func (a *answer) Icon() string  { return pathIcon + "?v=" + iconVersion }
func (a *answer) Touch() string { return pathTouch + "?v=" + iconVersion }

func (a *answer) Manifest() string { return pathManifest }

// sentence is the JSON form of every refusal.
type sentence struct {
	Error string `json:"error"`
}

// write sends an answer: as a page, or as a sentence in JSON to what is no browser.
func (p *Proxy) write(w http.ResponseWriter, r *http.Request, a *answer) {
	addHeader(w.Header(), a.header)
	if a.close {
		w.Header().Set("Connection", "close")
	}
	page := !a.Title.IsZero() && a.send == nil && a.json == nil && (a.Status == http.StatusOK || wantsPage(r))
	language := words.English
	if page {
		language = words.Accepted(r.Header.Get("Accept-Language"))
	}
	gate.DropHead(w, r)
	switch {
	case a.send != nil:
		a.send(w, r)
	case a.json != nil:
		writeJSON(w, a.Status, a.json)
	case a.Title.IsZero():
		w.WriteHeader(a.Status)
	case !page:
		writeJSON(w, a.Status, sentence{a.Text.String()})
	default:
		p.writePage(w, a, language)
	}
}

func (p *Proxy) writePage(w http.ResponseWriter, a *answer, language words.Language) {
	var body bytes.Buffer
	if err := pageTemplates(language).Execute(&body, a); err != nil {
		p.log.Error("a page could not be drawn", "page", a.Title.String(), "err", err)
		writeJSON(w, http.StatusInternalServerError, sentence{a.Text.String()})
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; manifest-src 'self'; form-action 'self'" +
		p.authOrigin() + "; base-uri 'none'; frame-ancestors 'none'"
	if a.Fetch != nil {
		policy += "; script-src " + a.Fetch.Script
	}
	if a.Script != "" || a.Times != "" {
		policy += "; script-src " + strings.TrimSpace(a.Script+" "+a.Times)
	}
	if a.worker != "" {
		policy += "; worker-src " + a.worker
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store") // so nothing keeps one language's page for another
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(a.Status)
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

// redirect sends a browser on by GET, to an address that was checked.
func redirect(to string) *answer {
	return &answer{
		Status: http.StatusSeeOther,
		header: http.Header{"Location": {to}, "Cache-Control": {"no-store"}, "Referrer-Policy": {"no-referrer"}},
	}
}
