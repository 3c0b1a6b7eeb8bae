package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"porchlight/assets/style"
	"porchlight/internal/noaccess"
	"porchlight/internal/words"
)

//go:embed templates
var templateFiles embed.FS

//go:embed passkeys.js
var passkeysScript []byte

// pages by the name of their template, made when they are first shown: those of every
// language would be four MiB of each agent that runs a control plane of its own. Each
// has its own set, so that each can define "main" and says its sentences in its language.
var pages = parsedWhenShown("signin", "check", "link", "invitation", "invitation-named", "invitation-code", "invitation-over", "off", "no-access", "knock", "account",
	"account-remove", "account-delete", "account-leave", "passkey", "passkey-use", "passkey-change", "prove", "bind", "passwords", "password-made", "consent", "device", "device-confirm",
	"account-mail", "recovery", "recovery-codes", "recovery-stop",
	"device-replace", "device-done", "about", "error",
	"admin", "admin-find", "admin-list", "admin-thing", "admin-nodes", "admin-ends")

func parsedWhenShown(names ...string) map[string]func(words.Language) *template.Template {
	out := map[string]func(words.Language) *template.Template{}
	for _, name := range names {
		out[name] = words.InEach(func(l words.Language) *template.Template {
			empty := template.New(name).Funcs(l.Funcs())
			set := template.Must(empty.Parse(noaccess.Source))
			return l.FoldHTML(template.Must(set.ParseFS(templateFiles, "templates/layout.html", "templates/"+name+".html")))
		})
	}
	return out
}

// languageOf is the language a page is said in: what the browser asks for.
func languageOf(r *http.Request) words.Language {
	return words.Accepted(r.Header.Get("Accept-Language"))
}

// page is what the templates show. Fields a page has no use for stay empty.
type page struct {
	Title  string
	Wide   bool
	Style  string // paths of the assets
	Script string // what says times in the reader's own; empty where none is told
	// Asks is the script that asks the browser for passkeys, and Begin the address where
	// it begins; empty where it does not.
	Asks, Begin string
	Icon        string
	AuthHost    string
	KeptMail    string // see Config.KeptMail

	Email   string
	Host    string // what the visitor wants to open; never an app's label
	Return  string // where they go once signed in
	Problem string // a sentence
	Token   string // of a sign-in link
	Invited bool   // they sign in to accept an invitation
	// ByComputer says that a computer of theirs made the sign-in link, and not a mail.
	ByComputer bool
	Again      string // where to sign in
	Back       string // where somebody signed in goes on

	Owner string // who invites
	From  string // what they call themselves, to stand beside Owner
	Line  string // what they wrote
	// Action is where the form of an invitation's page leads.
	Action string
	// Used and Ended are when an invitation was used or ended.
	Used, Ended words.Day
	Apps        []invitedRow
	Other       string    // address this browser is signed in with instead
	Until       string    // day an invitation ends
	Ends        time.Time // the same, where it is a time; or zero

	Admin *adminPage // nil elsewhere

	NoAccess noaccess.Page
	Knock    knockRow
	// Refresh is when the page loads itself again and from where, as <meta> has it.
	Refresh string

	Wait string

	Own    []computerRow
	Shared []sharedRow
	// Invitations are those of somebody who has not accepted them.
	Invitations []invitationRow
	Computer    computerRow // one of them
	State       stateRow
	MayEnrol    bool
	Sessions    []sessionRow
	Passkey     passkeyRow // one of them
	Passkeys    []passkeyRow
	HasPasskeys bool // there can be some
	Asked       bool // an app asks for one
	Once        bool // theirs opens what an invitation did, until a mail signs them in here
	MailOff     bool // mail does not sign them in
	CodesLeft   int
	Codes       []string // new recovery codes
	Recovery    string   // where a recovery code is typed
	Grants      []grantRow
	Providers   []providerRow
	NoMail      bool // see Config.NoMail
	Logins      []loginRow
	Provider    string // one of them, by its label
	Login       string // the address it writes for somebody, or ""

	Purpose   words.Sentence // what they sign in anew for, in words
	Client    string         // OAuth client that asks, by name, or by its host
	Claimed   string         // what one of a host calls itself
	Local     bool           // it is answered on this person's computer
	Version   string         // of what it says of itself
	Target    string         // where the browser goes afterwards
	AccountID string
	Choices   []choiceRow
	Picks     bool   // apps are picked
	AskedFor  string // apps that are asked for, in words

	Device deviceRow // computer that asks to be connected
	Code   string    // its user code

	Places    []placeRow // where somebody may have app passwords
	Password  string     // a new one
	Passwords int        // how many somebody has
	Name      string     // short name
	Domain    string     // what follows a short name in its host, with the dot

	// formTarget are the origins that a form of this page may lead to in the end,
	// as a policy's sources. Browsers apply form-action to the redirects after a POST, too.
	formTarget string
}

// Labels are what the apps are called.
func (p page) Labels() []string {
	out := make([]string, len(p.Apps))
	for i, a := range p.Apps {
		out[i] = a.Label
	}
	return out
}

// Today is what a client could open now, in words, where there is one computer to choose.
func (p page) Today() string {
	if len(p.Choices) != 1 {
		return ""
	}
	return p.Choices[0].Apps
}

type invitedRow struct {
	Label   string
	Initial string // of the label, for the tile
	Host    string
	Until   string    // when it ends for them, or ""
	End     time.Time // the same; zero for never
	Off     bool      // nobody answers there
}

// times says whether a page tells a time.
func (p page) times() bool {
	return p.Admin != nil || len(p.Own)+len(p.Shared) > 0 || !p.State.Since.IsZero() || slices.ContainsFunc(p.Apps, func(a invitedRow) bool { return !a.End.IsZero() })
}

// show writes a page. The policy allows nothing but our style sheet and icon, where a
// time is told the script that says it in the reader's own, and where the browser is asked
// for a passkey the script for that, with the one address it asks.
func (h *handler) show(w http.ResponseWriter, r *http.Request, status int, name string, p page) error {
	p.Style, p.Icon = stylePath, iconPath
	p.AuthHost, p.KeptMail = h.svc.AuthHostPort(), h.kept
	script, origin := "", " "+h.at
	if p.times() {
		p.Script, script = timesPath, origin+timesPath
	}
	if p.Begin != "" {
		p.Asks, script = passkeysPath, script+origin+passkeysPath
	}
	if script != "" {
		script = "script-src" + script + "; "
	}
	if p.Begin != "" {
		script += "connect-src" + origin + p.Begin + "; "
	}
	var b bytes.Buffer
	if err := pages[name](languageOf(r)).ExecuteTemplate(&b, "layout", p); err != nil {
		return err
	}
	target := ""
	if p.formTarget != "" {
		target = " " + p.formTarget
	}
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Cache-Control", "no-store") // so nothing keeps one language's page for another
	images, more := "'self' data:", ""
	if p.Admin != nil {
		images, more = "'self'", "; require-trusted-types-for 'script'"
	}
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src "+images+"; "+script+
		"form-action 'self'"+target+"; frame-ancestors 'none'; base-uri 'none'"+more)
	w.WriteHeader(status)
	w.Write(b.Bytes()) // an error means that nobody reads it any more
	return nil
}

// The assets are named by their content, so that browsers may keep them.
var (
	styleSheet = []byte(style.Pages())
	iconImage  = []byte(style.Icon())
	stylePath  = "/assets/style-" + digest(styleSheet) + ".css"
	adminStyle = []byte(style.Admin())

	adminStylePath = "/assets/admin-" + digest(adminStyle) + ".css"

	timesPath    = "/assets/times-" + digest([]byte(style.Times())) + ".js"
	passkeysPath = "/assets/passkeys-" + digest(passkeysScript) + ".js"
	iconPath     = "/assets/icon-" + digest(iconImage) + ".svg"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

func (h *handler) asset(w http.ResponseWriter, r *http.Request) error {
	var data []byte
	switch r.URL.Path {
	case stylePath:
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		data = styleSheet
	case adminStylePath:
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		data = adminStyle
	case timesPath:
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		data = []byte(style.Times())
	case passkeysPath:
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		data = passkeysScript
	case iconPath:
		w.Header().Set("Content-Type", "image/svg+xml")
		data = iconImage
	default:
		return notFound()
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	if !strings.EqualFold(r.Method, http.MethodHead) {
		w.Write(data)
	}
	return nil
}
