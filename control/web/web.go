// Package web is what the control plane shows the world: the pages people sign
// in with, the interface agents speak (/v1/), and the public key.
//
// Every request comes through New's handler: headers that hold for every
// answer, then one route table, whose tiers say who may call and how a refusal
// looks. The pages need no script; one says times in the reader's own, and one asks the
// browser for passkeys, without which people sign in by mail. Decisions are those of
// package control; this package turns requests into its calls.
package web

import (
	"cmp"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/oauth"
	"porchlight/internal/words"
)

// Config of the handler; the zero value is fine.
type Config struct {
	Now func() time.Time
	Log *slog.Logger
	// KeptMail is the command that shows mails which are kept instead of sent;
	// empty where they are sent. Pages name it to who waits for one, on a
	// computer of their own only.
	KeptMail string
	// NoMail says that mails reach nobody, so that who signs in is offered none.
	NoMail bool
	// SecurityContact is the URI of security.txt; empty for no such file.
	SecurityContact string
	// Install holds the files of a release, which anybody may fetch below /install/; nil for none.
	Install *os.Root
	// AdminURL is where /admin is, the auth host's own address or another of its ports, which
	// NewAdmin answers; empty for nowhere.
	AdminURL string
	// AdminAPI answers programs below /admin/api/, by tokens alone; nil for nothing there.
	AdminAPI http.Handler
	// CertEnds is when the auth host's certificate ends; nil where nobody knows, zero for none yet.
	CertEnds func() time.Time
	// LetIn is told of each request whose sender is known: by a device credential, a
	// session, or as a browser that signed in before. nil for nobody who wants to know.
	LetIn func(*http.Request)
}

type handler struct {
	letIn   func(*http.Request)
	svc     *control.Service
	now     func() time.Time
	log     *slog.Logger
	session string // cookie names
	signIn  string
	known   string
	typed   string
	passkey string
	admin   string
	// at is the address this handler answers at, and adminAt that of /admin or "".
	at, adminAt string
	adminAPI    http.Handler
	certEnds    func() time.Time // see Config.CertEnds
	// provider is the cookie of a sign-in at one.
	provider string
	noMail   bool   // see Config.NoMail
	kept     string // see Config.KeptMail
	contact  string // see Config.SecurityContact
	install  *installs
	oauth    *oauth.Handler
	routes   []route
}

// tier says who may call a route, and how its refusals are written.
type tier int

const (
	tierPage   tier = iota // people: pages, on our own host, no foreign forms
	tierPublic             // anybody, other sites' scripts included: JSON
	tierDevice             // agents: JSON, device credential unless they are only getting one
	tierAdmin              // operators: pages as tierPage, after entered
)

// forPeople says whether its answers are pages.
func (t tier) forPeople() bool { return t == tierPage || t == tierAdmin }

type route struct {
	method string // "" for all, where the handler answers the wrong ones itself
	path   string
	tier   tier
	serve  serveFunc
}

// New makes the handler. Requests reach it with the visitor's own address as
// RemoteAddr.
func New(svc *control.Service, cfg Config) http.Handler { return newHandler(svc, cfg).mount() }

// NewAdmin makes the handler of Config.AdminURL, where that is not the auth host's.
func NewAdmin(svc *control.Service, cfg Config) http.Handler {
	h := newHandler(svc, cfg)
	h.at = h.adminAt
	h.routes = append(h.adminRoutes(), route{"GET", "/assets/{file}", tierPage, h.asset})
	return h.mount()
}

func newHandler(svc *control.Service, cfg Config) *handler {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.LetIn == nil {
		cfg.LetIn = func(*http.Request) {}
	}
	h := &handler{
		letIn: cfg.LetIn, svc: svc, contact: cfg.SecurityContact, install: newInstalls(cfg.Install), now: cfg.Now, log: cfg.Log,
		session: "__Host-porchlight-" + svc.Keys.Instance(),
		signIn:  "__Host-porchlight-signin-" + svc.Keys.Instance(),
		known:   "__Host-porchlight-known-" + svc.Keys.Instance(),
		typed:   "__Host-porchlight-typed-" + svc.Keys.Instance(),
		passkey: "__Host-porchlight-passkey-" + svc.Keys.Instance(),
		admin:   "__Host-porchlight-admin-" + svc.Keys.Instance(),
		at:      svc.AuthURL(), adminAt: cfg.AdminURL, adminAPI: cfg.AdminAPI, certEnds: cfg.CertEnds,

		provider: "__Host-porchlight-provider-" + svc.Keys.Instance(), noMail: cfg.NoMail,
	}
	if svc.Local() {
		h.kept = cfg.KeptMail
	}
	h.oauth = oauth.New(svc.Clients, svc.Grants, svc.People, oauthPages{h}, svc.AuthURL, cfg.Log)
	h.routes = []route{
		{"GET", "/{$}", tierPage, h.home},
		{"GET", "/signin", tierPage, h.signInForm},
		{"POST", "/signin", tierPage, posted(h.signInBegin)},
		{"GET", "/signin/check", tierPage, h.checkMail},
		{"POST", "/signin/code", tierPage, posted(h.signInCode)},
		{"GET", control.PathSignInLink, tierPage, h.linkForm},
		{"POST", control.PathSignInLink, tierPage, posted(h.signInLink)},
		{"POST", pathPasskey, tierPage, posted(h.passkeySignIn)},
		{"POST", pathPasskey + "/begin", tierPage, h.passkeyBegin},
		{"GET", pathRecovery, tierPage, h.recoveryForm},
		{"POST", pathRecovery, tierPage, posted(h.recoverySignIn)},
		{"GET", control.PathStopRecovery, tierPage, queried(h.stopForm)},
		{"POST", control.PathStopRecovery, tierPage, posted(h.stop)},
		{"GET", control.PathProvider + "{name}", tierPage, h.providerBegin},
		{"GET", control.PathProvider + "{name}" + control.PathProviderBack, tierPage, h.providerBack},
		{"GET", control.PathProvider + "{name}/prove", tierPage, h.proveForm},
		{"POST", control.PathProvider + "{name}/prove", tierPage, posted(h.proveBegin)},
		{"GET", control.PathBind("{name}"), tierPage, h.bindForm},
		{"POST", control.PathBind("{name}"), tierPage, posted(h.bind)},
		{"POST", control.PathProvider + "{name}" + control.PathProviderLogout, tierPublic, h.providerLogout},
		{"GET", control.PathInvitation, tierPage, h.invitationForm},
		{"POST", control.PathInvitation, tierPage, posted(h.invitationAccept)},
		{"GET", control.PathInvitationName + "{name}", tierPage, h.namedForm},
		{"POST", control.PathInvitationName + "{name}", tierPage, h.namedAccept},
		{"POST", control.PathInvitationName + "{name}/mail", tierPage, h.namedMail},
		{"POST", control.PathInvitationName + "{name}/code", tierPage, posted(h.namedCode)},
		{"GET", pathOff, tierPage, h.off},
		{"POST", "/signout", tierPage, posted(h.signOut)},
		{"GET", "/account", tierPage, h.signed(h.account)},
		{"GET", "/account/computer", tierPage, h.signed(h.removeForm)},
		{"POST", "/account/computer", tierPage, h.accountForm(h.remove)},
		{"GET", "/account/leave", tierPage, h.signed(h.leaveForm)},
		{"POST", "/account/leave", tierPage, h.accountForm(h.leaveComputer)},
		{"GET", pathExport, tierPage, h.export},
		{"GET", pathDelete, tierPage, h.deleteForm},
		{"POST", pathDelete, tierPage, posted(h.deleteAccount)},
		{"POST", "/account/sessions/end", tierPage, h.accountForm(h.endSession)},
		{"POST", "/account/logins/remove", tierPage, h.accountForm(h.removeLogin)},
		{"POST", "/account/grants/revoke", tierPage, h.accountForm(h.revokeGrant)},
		{"GET", pathPasskeys + "/new", tierPage, h.passkeyForm},
		{"POST", pathPasskeys, tierPage, posted(h.passkeyAdd)},
		{"POST", pathPasskeys + "/begin", tierPage, h.passkeyAddBegin},
		{"GET", pathPasskeys + "/change", tierPage, queried(h.passkeyChangeForm)},
		{"POST", pathPasskeys + "/change", tierPage, posted(h.passkeyChange)},
		{"GET", pathMail, tierPage, h.mailForm},
		{"POST", pathMail, tierPage, posted(h.mailChange)},
		{"GET", controlapi.PathPasswordPages, tierPage, h.passwordsForm},
		{"POST", controlapi.PathPasswordPages, tierPage, posted(h.makePassword)},
		{"POST", controlapi.PathPasswordPages + "/revoke", tierPage, h.signedForm(h.revokePassword)},
		{"GET", controlapi.PathDevice, tierPage, h.deviceForm},
		{"POST", controlapi.PathDevice, tierPage, posted(h.deviceDecide)},
		{"GET", "/device/done", tierPage, h.signed(h.deviceDone)},
		{"GET", "/about", tierPage, h.about},
		{"GET", controlapi.PathVisit, tierPage, h.visit},
		{"GET", controlapi.PathKnock, tierPage, queried(h.atDoor(h.knockForm))},
		{"POST", controlapi.PathKnock, tierPage, posted(h.atDoor(h.knockAsk))},
		{"POST", controlapi.PathKnock + "/accept", tierPage, posted(h.atDoor(h.knockAccept))},
		{"GET", "/assets/{file}", tierPage, h.asset},
		{"GET", controlapi.PathAuthorize, tierPage, h.oauth.Authorize},
		{"POST", controlapi.PathAuthorize, tierPage, h.oauth.Decide},

		{"", controlapi.PathToken, tierPublic, h.oauth.Token},
		{"", controlapi.PathRevoke, tierPublic, h.oauth.Revoke},
		{"GET", controlapi.PathPublicKey, tierPublic, published(time.Minute, h.publicKey)},
		{"OPTIONS", controlapi.PathPublicKey, tierPublic, preflight},
		{"GET", controlapi.PathKeySet, tierPublic, published(time.Minute, h.keySet)},
		{"OPTIONS", controlapi.PathKeySet, tierPublic, preflight},
		{"GET", controlapi.PathDiscovery, tierPublic, h.discovery},
		{"OPTIONS", controlapi.PathDiscovery, tierPublic, preflight},
		{"GET", controlapi.PathOpenID, tierPublic, noOpenID},
		{"GET", "/healthz", tierPublic, h.health},
		{"GET", pathSecurity, tierPublic, h.securityText},
		{"GET", pathInstall + "{file}", tierPublic, h.install.serve},

		{"POST", controlapi.PathEnrol, tierDevice, h.enrol},
		{"POST", controlapi.PathEnrolToken, tierDevice, h.pollEnrolment},
		{"DELETE", controlapi.PathComputer, tierDevice, h.device(h.endCredential)},
		{"GET", controlapi.PathSyncBefore, tierDevice, h.device(outdated)},
		{"PUT", controlapi.PathApps, tierDevice, h.device(noted(svc.Agents.PutApps))},
		{"POST", controlapi.PathVisits, tierDevice, h.visited(asked(svc.Visits.Redeem))},
		{"POST", controlapi.PathBrowsersEnd, tierDevice, h.device(noted(svc.Sessions.EndForComputer))},
		{"POST", controlapi.PathPasskeysEnd, tierDevice, h.device(noted(svc.Passkeys.EndForComputer))},
		{"POST", controlapi.PathOwnersLink, tierDevice, h.device(asked(svc.Recovery.Link))},
		{"GET", controlapi.PathPeople, tierDevice, h.device(h.people)},
		{"POST", controlapi.PathPeopleInvite, tierDevice, h.device(asked(svc.People.Invite))},
		{"POST", controlapi.PathPeopleInvitations, tierDevice, h.device(asked(svc.People.InviteAll))},
		{"POST", controlapi.PathPeopleLink, tierDevice, h.device(asked(svc.People.Link))},
		{"POST", controlapi.PathPeopleAccess, tierDevice, h.device(asked(svc.People.SetAccess))},
		{"POST", controlapi.PathPeopleRemove, tierDevice, h.device(asked(svc.People.Remove))},
		{"POST", controlapi.PathKnocksAnswer, tierDevice, h.device(asked(svc.Knocks.Answer))},
		{"GET", controlapi.PathGrants, tierDevice, h.device(h.listGrants)},
		{"POST", controlapi.PathGrantsRevoke, tierDevice, h.device(noted(svc.Grants.RevokeForComputer))},
		{"GET", controlapi.PathDomains, tierDevice, h.device(h.listDomains)},
		{"POST", controlapi.PathDomains, tierDevice, h.device(asked(svc.Domains.Add))},
		{"POST", controlapi.PathDomainsLook, tierDevice, h.device(asked(svc.Domains.Look))},
		{"POST", controlapi.PathDomainsRemove, tierDevice, h.device(noted(svc.Domains.Remove))},
		{"PUT", controlapi.PathChallenges, tierDevice, h.device(noted(svc.Challenges.Put))},
		{"GET", controlapi.PathPasswords, tierDevice, h.device(h.listPasswords)},
		{"POST", controlapi.PathPasswords, tierDevice, h.device(asked(svc.Passwords.MakeForOwner))},
		{"POST", controlapi.PathPasswordsRevoke, tierDevice, h.device(noted(svc.Passwords.RevokeForComputer))},
	}
	if h.adminAt == h.at {
		h.routes = append(h.routes, h.adminRoutes()...)
	}
	return h
}

func (h *handler) mount() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range h.routes {
		mux.Handle(strings.TrimSpace(rt.method+" "+rt.path), h.dispatch(rt))
	}
	mux.Handle("/v1/", h.dispatch(route{"", "/v1/", tierPublic, h.noRoute}))
	mux.Handle("/", h.dispatch(route{"", "/", tierPage, h.noRoute}))
	if h.adminAt == h.at {
		for _, path := range []string{pathAdmin, pathAdmin + "/"} {
			mux.Handle(path, h.dispatch(route{"", path, tierAdmin, h.noRoute}))
		}
		if h.adminAPI != nil {
			mux.Handle(pathAdmin+"/api/", h.dispatch(route{"", pathAdmin + "/api/", tierPublic, h.serveAdminAPI}))
		}
	}
	return h.always(mux)
}

// always sets the headers that hold for every answer.
func (h *handler) always(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		// Agents reckon with it, and nodes whose clocks differ are one server to them.
		head.Set("Date", h.now().UTC().Format(http.TimeFormat))
		head.Set("X-Content-Type-Options", "nosniff")
		// no-referrer would make browsers send "Origin: null" with our forms.
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
		if !h.svc.Local() {
			// Under localhost it would outlive this program and bind others.
			head.Set("Strict-Transport-Security", "max-age=31536000")
		}
		head.Set(controlapi.HeaderProtocol, controlapi.Protocol)
		next.ServeHTTP(w, r)
	})
}

// dispatch is the one way into a route: the checks of its tier, its handler,
// and its errors. The log names the route and never the address, whose query
// may hold a link or a code.
func (h *handler) dispatch(rt route) http.Handler {
	var next http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := h.now()
		*r = *r.WithContext(kv.WithTurn(r.Context(), control.TurnOf(clientAddr(r)))) // no copy that keeps its head, see lettingGo
		enters, err := rt.tier != tierAdmin, error(nil)
		if !enters {
			enters, err = h.entered(w, r)
		}
		if enters {
			err = rt.serve(w, r)
		}
		h.log.Debug("request", "method", r.Method, "route", rt.path, "took", h.now().Sub(began), "ok", err == nil)
		if err == nil {
			return
		}
		refusal := h.refusal(r, rt.path, err)
		if refusal == nil {
			return
		}
		if rt.tier.forPeople() {
			h.showError(w, r, refusal)
		} else {
			writeError(w, refusal)
		}
	})
	if !rt.tier.forPeople() {
		return h.bounded(rt.tier, next)
	}
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.showError(w, r, &controlapi.Error{Code: controlapi.CodeForbidden, Message: "This form was sent from another site. Go back and open the page here."})
	}))
	next = guard.Handler(next)
	return h.bounded(rt.tier, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.isHere(r) {
			h.showError(w, r, &controlapi.Error{Code: controlapi.CodeNotFound, Message: "There is nothing at this address.", HTTPStatus: http.StatusMisdirectedRequest})
			return
		}
		// The guard compares hosts only, and without TLS anybody on the way is this host.
		if !strings.HasPrefix(r.Header.Get("Origin"), "https://") && len(r.Header["Origin"]) > 0 {
			r.Header.Set("Origin", "null")
		}
		if h.svc.SignIn.Knows(cookie(r, h.known)) {
			h.letIn(r)
		}
		*r = *r.WithContext(control.WithDevice(r.Context(), deviceOf(r)))
		next.ServeHTTP(w, r)
	}))
}

// refusal is what whoever asked is told of err, or nil where nobody waits for it.
func (h *handler) refusal(r *http.Request, path string, err error) *controlapi.Error {
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok {
		return refusal
	}
	if r.Context().Err() != nil {
		return nil
	}
	refusal, away := control.Away(err)
	if away && errors.Is(err, kv.ErrBusy) {
		h.log.Debug("a request was sent away", "method", r.Method, "route", path, "err", err) // it is counted
		return refusal
	}
	h.log.Error("a request failed", "method", r.Method, "route", path, "err", err)
	if !away {
		refusal = &controlapi.Error{Code: controlapi.CodeInternal, Message: "Something went wrong on this side. Try again in a moment."}
	}
	return refusal
}

// noRoute answers what no row of the table does: 405 where a row has just this path
// and another method, else 404.
func (h *handler) noRoute(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, rt := range h.routes {
		if rt.path == r.URL.Path {
			allowed = append(allowed, rt.method)
		}
	}
	if len(allowed) == 0 {
		return notFound()
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	refusal := controlapi.Refuse(controlapi.CodeInvalid, words.Of("This address does not take %s.", r.Method))
	refusal.HTTPStatus = http.StatusMethodNotAllowed
	return refusal
}

func notFound() error { return control.NothingThere() }

func invalid(sentence string) error {
	return &controlapi.Error{Code: controlapi.CodeInvalid, Message: sentence}
}

// statuses are the HTTP statuses of codes.
var statuses = map[string]int{
	controlapi.CodeInvalid: http.StatusBadRequest, controlapi.CodeInvalidGrant: http.StatusBadRequest,
	controlapi.CodeAuthorizationPending: http.StatusBadRequest, controlapi.CodeSlowDown: http.StatusBadRequest,
	controlapi.CodeExpiredToken: http.StatusBadRequest, controlapi.CodeAccessDenied: http.StatusBadRequest,
	controlapi.CodeUnauthorized: http.StatusUnauthorized,
	controlapi.CodeForbidden:    http.StatusForbidden,
	controlapi.CodeSuspended:    http.StatusForbidden,
	controlapi.CodeNotFound:     http.StatusNotFound,
	controlapi.CodeTooMany:      http.StatusTooManyRequests,
	controlapi.CodeUnavailable:  http.StatusServiceUnavailable,
}

// statusOf is the HTTP status of an error's code, unless it names its own.
func statusOf(e *controlapi.Error) int {
	return cmp.Or(e.HTTPStatus, statuses[e.Code], http.StatusInternalServerError)
}

// retryAfter sets the header where there is something to wait for, in whole
// seconds, never too few.
func retryAfter(w http.ResponseWriter, e *controlapi.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
}

func writeError(w http.ResponseWriter, e *controlapi.Error) {
	retryAfter(w, e)
	if e.Code == controlapi.CodeUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="porchlight"`)
	}
	controlapi.WriteJSON(w, statusOf(e), e)
}

// reply writes what was asked for, unless there is an error instead.
func reply(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	controlapi.WriteJSON(w, http.StatusOK, v)
	return nil
}

func (h *handler) showError(w http.ResponseWriter, r *http.Request, e *controlapi.Error) {
	status := statusOf(e)
	l := languageOf(r)
	p := page{Problem: problemOf(l, e), Back: h.svc.AuthURL() + "/account"}
	switch status {
	case http.StatusNotFound, http.StatusMisdirectedRequest, http.StatusMethodNotAllowed:
		p.Title = l.Say("Nothing here")
	case http.StatusTooManyRequests:
		p.Title, p.Wait = l.Say("Not so fast"), waitInWords(l, e.RetryAfter)
	case http.StatusServiceUnavailable, http.StatusInternalServerError:
		p.Title = l.Say("That did not work")
	case http.StatusRequestHeaderFieldsTooLarge:
		p.Title = l.Say("This request is too large")
	default:
		p.Title = l.Say("That can’t be opened")
	}
	retryAfter(w, e)
	if err := h.show(w, r, status, "error", p); err != nil {
		h.log.Error("an error page could not be written", "err", err)
	}
}

// waitInWords rounds up: "45 seconds", "3 minutes", "2 hours".
func waitInWords(l words.Language, d time.Duration) string {
	in := func(unit time.Duration) int { return int(math.Ceil(float64(d) / float64(unit))) }
	switch {
	case d <= 0:
		return ""
	case d <= time.Minute:
		return l.Count(in(time.Second), "%d second", "%d seconds")
	case d <= time.Hour:
		return l.Count(in(time.Minute), "%d minute", "%d minutes")
	default:
		return l.Count(in(time.Hour), "%d hour", "%d hours")
	}
}

// problemOf is a refusal in a page's language.
func problemOf(l words.Language, err error) string {
	if refusal, ok := errors.AsType[*controlapi.Error](err); ok {
		return l.Tell(refusal.Sentence())
	}
	if err == nil {
		return ""
	}
	return l.Tell(words.Plain(err.Error()))
}
