package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/oauth"
	"porchlight/internal/words"
)

// Bounds of what is read, in bytes.
const (
	maxForm   = 16 << 10
	maxJSON   = 1 << 20  // the apps of a computer, with long labels, however escaped
	maxAsk    = 64 << 10 // without a credential yet: an enrolment, with the names of its apps
	maxReturn = 4 << 10  // holds an authorization request, too: oauth.maxQuery
)

// form reads a posted form whose fields come once each.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, invalid("This form was not sent by its page. Open the page again.")
	}
	if err := r.ParseForm(); err != nil {
		return nil, invalid("This form could not be read. Open the page again.")
	}
	for _, values := range r.PostForm {
		if len(values) > 1 {
			return nil, invalid("This form has a field twice. Open the page again.")
		}
	}
	return r.PostForm, nil
}

// serveFunc answers a request, or says why not.
type serveFunc = func(http.ResponseWriter, *http.Request) error

// posted serves a form.
func posted(serve func(http.ResponseWriter, *http.Request, url.Values) error) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, err := form(w, r)
		if err != nil {
			return err
		}
		return serve(w, r, f)
	}
}

// queried serves what the query of an address says.
func queried(serve func(http.ResponseWriter, *http.Request, url.Values) error) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error { return serve(w, r, r.URL.Query()) }
}

// signed serves a page of the account. Who is signed out is sent to sign in, and from there
// to the account.
func (h *handler) signed(serve func(http.ResponseWriter, *http.Request, control.Session) error) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		session, ok, err := h.current(w, r)
		if err != nil {
			return err
		}
		if !ok {
			return seeOther(w, r, signInPath("/signin", destination{path: "/account"}))
		}
		return serve(w, r, session)
	}
}

// signedForm is signed for a form.
func (h *handler) signedForm(serve func(http.ResponseWriter, *http.Request, control.Session, url.Values) error) serveFunc {
	return posted(func(w http.ResponseWriter, r *http.Request, f url.Values) error {
		return h.signed(func(w http.ResponseWriter, r *http.Request, session control.Session) error {
			return serve(w, r, session, f)
		})(w, r)
	})
}

// accountForm does what a form of the account's pages asks for, and leads back to the
// account.
func (h *handler) accountForm(do func(context.Context, control.Session, url.Values) error) serveFunc {
	return h.signedForm(func(w http.ResponseWriter, r *http.Request, session control.Session, f url.Values) error {
		if err := do(r.Context(), session, f); err != nil {
			return err
		}
		return seeOther(w, r, "/account")
	})
}

// readJSON reads a body of one JSON value into v.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	return readJSONUpTo(maxJSON, w, r, v)
}

func readJSONUpTo(most int64, w http.ResponseWriter, r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &controlapi.Error{Code: controlapi.CodeInvalid, Message: "The body must be application/json.", HTTPStatus: http.StatusUnsupportedMediaType}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &controlapi.Error{Code: controlapi.CodeInvalid, Message: "The body is too large.", HTTPStatus: http.StatusRequestEntityTooLarge}
	}
	if err == nil {
		err = json.Unmarshal(body, v) // which takes one value and nothing behind it
	}
	if err != nil {
		return invalid("The body is not the JSON expected here.")
	}
	return nil
}

// clientAddr is the visitor's address, or the zero one.
func clientAddr(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}

// destination is where a browser goes once it is signed in: a page of ours,
// never another site's.
type destination struct {
	path  string // with query, "" for none
	host  string // what the visitor will open there, "" for none
	leads string // origin of that host
	app   string // OAuth client to be allowed there, by name, "" for none
	// purpose is what having signed in long ago is not enough for, in words; zero where
	// it is enough.
	purpose words.Sentence
	invited bool // it is the page of an invitation
	// proofs are the ways of having signed in that will do there; nil for all.
	proofs []controlapi.Proof
}

// parseReturn accepts the few pages signing in leads back to; anything else is
// no destination. A visit must be well formed, which keeps its host within the
// domain of this control plane; an authorization must be a registered client's, or of one
// that may describe itself.
func (h *handler) parseReturn(ctx context.Context, raw string) destination {
	if raw == "/account" {
		return destination{path: raw}
	}
	if raw == pathMail {
		return toMail()
	}
	if len(raw) > maxReturn {
		return destination{}
	}
	if name, named := strings.CutPrefix(raw, control.PathInvitationName); named {
		if name, ok := control.ParseInvitationName(name); ok {
			return destination{path: control.InvitationPath(name), invited: true}
		}
	}
	if h.adminAt != "" && adminPath.MatchString(raw) {
		return h.toAdmin(raw)
	}
	path, query, _ := strings.Cut(raw, "?")
	if query == "" && strings.HasPrefix(path, control.PathProvider) {
		return h.maybeToBind(path)
	}
	return h.parsePage(ctx, raw, path, query)
}

// parsePage is parseReturn for the pages at fixed paths, some of which take a query.
func (h *handler) parsePage(ctx context.Context, raw, path, query string) destination {
	switch path {
	case controlapi.PathDevice:
		if query == "" {
			return toDevice("")
		}
		if code, err := control.ParseUserCode(strings.TrimPrefix(query, "code=")); err == nil {
			return toDevice(code)
		}
	case pathExport:
		return toExport()
	case pathDelete:
		return toDelete()
	case pathPasskeys + "/new":
		return h.maybePasskeyFirst(ctx, path, query)
	case pathPasskeys + "/change":
		if id, named := strings.CutPrefix(query, "passkey="); named && passkeyID.MatchString(id) {
			return toPasskey(id)
		}
	case controlapi.PathPasswordPages:
		return h.maybeToPasswords(query)
	case controlapi.PathVisit:
		if v, err := h.svc.Visits.Parse(ctx, query); err == nil {
			return destination{path: raw, host: v.Host, leads: v.Origin(), proofs: v.Proofs}
		}
	case controlapi.PathKnock:
		return h.maybeToDoor(query)
	case controlapi.PathAuthorize:
		return h.maybeToAllow(ctx, raw, query)
	}
	return destination{}
}

// maybeToPasswords is the page of app passwords, of one computer or of all.
func (h *handler) maybeToPasswords(query string) destination {
	name, named := strings.CutPrefix(query, controlapi.ParamComputer+"=")
	if query == "" || named && h.svc.ValidShortName(name) == nil {
		return toPasswords(name)
	}
	return destination{}
}

// maybeToDoor is the page of somebody who may ask to be let in.
func (h *handler) maybeToDoor(query string) destination {
	fields, err := url.ParseQuery(query)
	if err != nil {
		return destination{}
	}
	d, err := h.svc.Knocks.ParseDoor(fields)
	if err != nil {
		return destination{}
	}
	return toDoor(d)
}

// maybePasskeyFirst is the page that makes a passkey and then goes where it was asked to lead.
func (h *handler) maybePasskeyFirst(ctx context.Context, path, query string) destination {
	back, _ := url.ParseQuery(query)
	if next, _, _ := strings.Cut(back.Get("return"), "?"); next == path {
		return toNewPasskey("") // leads nowhere but to itself
	}
	return toNewPasskey(h.parseReturn(ctx, back.Get("return")).path)
}

// maybeToAllow is the page that asks about a client that we know, or that may describe itself.
func (h *handler) maybeToAllow(ctx context.Context, raw, query string) destination {
	req, err := oauth.ParseRequest(query)
	if err != nil {
		return destination{}
	}
	if control.DescribesItself(req.ClientID) {
		// What it says of itself may not have been read yet: that is for who is signed in.
		if h.svc.Clients.MayDescribe(ctx, req.ClientID) != nil {
			return destination{}
		}
		return destination{path: raw, app: controlapi.ClientHost(req.ClientID)}
	}
	if req.Problem != "" {
		return destination{}
	}
	client, err := h.svc.Clients.For(ctx, req.ClientID, req.RedirectURI)
	if err != nil {
		return destination{}
	}
	return destination{path: raw, app: client.Name}
}

// signInPath is the sign-in page that leads to d.
func signInPath(page string, d destination) string {
	if d.path == "" {
		return page
	}
	return page + "?" + url.Values{"return": {d.path}}.Encode()
}

func seeOther(w http.ResponseWriter, r *http.Request, to string) error {
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// setCookie writes one of our cookies; they reach this host only, and no
// script.
func setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life / time.Second),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func dropCookie(w http.ResponseWriter, name string) { setCookie(w, name, "", -time.Second) }

func cookie(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// current is the session of the browser; ok is false when it is signed out, or
// signed in by an invitation only, which is good for visits and nothing else.
func (h *handler) current(w http.ResponseWriter, r *http.Request) (session control.Session, ok bool, err error) {
	return h.sessionBy(w, r, h.svc.Sessions.Of)
}

// visiting is the session of a browser that may visit the computer of this short
// name, limited to it or not.
func (h *handler) visiting(w http.ResponseWriter, r *http.Request, computer string) (session control.Session, ok bool, err error) {
	return h.sessionBy(w, r, func(ctx context.Context, token string) (control.Session, error) {
		return h.svc.Sessions.For(ctx, token, computer)
	})
}

func (h *handler) sessionBy(w http.ResponseWriter, r *http.Request, find func(context.Context, string) (control.Session, error)) (session control.Session, ok bool, err error) {
	token := cookie(r, h.session)
	if token == "" {
		return control.Session{}, false, nil
	}
	session, err = find(r.Context(), token)
	if control.IsRefusal(err, controlapi.CodeUnauthorized) {
		return control.Session{}, false, nil
	}
	if err != nil {
		return control.Session{}, false, err
	}
	h.letIn(r)
	// What follows waits in the turn of the account, and not in that of everybody who
	// is in the same network.
	*r = *r.WithContext(kv.WithTurn(r.Context(), "account "+session.Account.ID))
	if session.Renewed {
		setCookie(w, h.session, token, control.SessionLife)
	}
	return session, true, nil
}
