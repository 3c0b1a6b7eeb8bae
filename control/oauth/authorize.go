package oauth

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// maxQuery bounds the query of the authorization endpoint, in bytes.
const maxQuery = 4000

// Request is a well-formed authorization request. Whether the client exists and
// the redirect URI is its own is not known yet.
type Request struct {
	ClientID    string
	RedirectURI string
	State       string // returned unchanged
	HasState    bool
	Challenge   string
	Resources   []string // addresses of what it wants to open, of which nothing is known
	// Problem is the OAuth code to go back to the client with, once its redirect
	// URI is known to be registered; empty when there is none. Why says what is
	// wrong, in ASCII for the client's author.
	Problem, Why string
}

// ParseRequest reads the query of the authorization endpoint. It refuses what
// leaves nobody to go back to: a query that cannot be read, or one with no
// client or redirect URI or with two of them, or of state. Everything else that
// is wrong becomes the Request's Problem. Parameters it does not know are
// ignored (RFC 6749, section 3.1).
func ParseRequest(rawQuery string) (Request, error) {
	if len(rawQuery) > maxQuery {
		return Request{}, refuse(codeInvalidRequest, "The app that sent you here asked with too long an address.")
	}
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return Request{}, refuse(codeInvalidRequest, "The app that sent you here asked in a way that cannot be read.")
	}
	switch {
	case len(q["client_id"]) != 1 || q.Get("client_id") == "":
		return Request{}, refuse(controlapi.CodeInvalidClient, "The app that sent you here did not say which one it is.")
	case len(q["redirect_uri"]) != 1 || q.Get("redirect_uri") == "":
		return Request{}, refuse(controlapi.CodeInvalidRedirectURI, "The app that sent you here did not say where to go back to.")
	case len(q["state"]) > 1:
		return Request{}, refuse(codeInvalidRequest, "The app that sent you here asked for two things at once.")
	}
	r := Request{
		ClientID:    q.Get("client_id"),
		RedirectURI: q.Get("redirect_uri"),
		State:       q.Get("state"),
		HasState:    q.Has("state"),
		Challenge:   q.Get("code_challenge"),
		Resources:   q["resource"],
	}
	r.Problem, r.Why = problem(q)
	return r, nil
}

// problem is what the client can be told of a request.
func problem(q url.Values) (code, why string) {
	switch {
	case len(q["response_type"]) != 1 || q.Get("response_type") != "code":
		return controlapi.CodeUnsupportedResponseType, "response_type must be code, once."
	case len(q["code_challenge"]) != 1:
		return controlapi.CodeAccessDenied, "PKCE is required: send one code_challenge (RFC 7636)."
	case !control.ValidChallenge(q.Get("code_challenge")):
		return controlapi.CodeAccessDenied, "code_challenge must be the base64url of a SHA-256 without padding, 43 characters."
	case len(q["code_challenge_method"]) != 1 || q.Get("code_challenge_method") != "S256":
		// Left out it means "plain" (RFC 7636, section 4.3).
		return controlapi.CodeAccessDenied, "code_challenge_method must be S256; plain is not taken."
	case !scopeGiven(q["scope"]):
		return codeInvalidScope, onlyScope
	}
	return "", ""
}

func refuse(code, sentence string) error {
	return &controlapi.Error{Code: code, Message: sentence, HTTPStatus: http.StatusBadRequest}
}

// back redirects to the client, saying from whom that comes (RFC 9207). Only requests
// whose redirect URI is known to be the client's get here.
func (h *Handler) back(w http.ResponseWriter, r *http.Request, req Request, params url.Values) error {
	params.Set("iss", h.issuer())
	if req.HasState {
		params.Set("state", req.State)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, control.Redirection(req.RedirectURI, params), http.StatusSeeOther)
	return nil
}

func (h *Handler) backWith(w http.ResponseWriter, r *http.Request, req Request, code, why string) error {
	return h.back(w, r, req, url.Values{"error": {code}, "error_description": {why}})
}

// Authorize answers GET PathAuthorize: back to the client with what is wrong, to
// sign-in, or the consent page.
func (h *Handler) Authorize(w http.ResponseWriter, r *http.Request) error {
	a, ok, err := h.request(w, r)
	if !ok || err != nil {
		return err
	}
	return h.consent(w, r, http.StatusOK, a, "")
}

// asking is a request of a client whose redirect URI is its own, with who is asked, and for
// what.
type asking struct {
	Request
	client  control.Client
	session control.Session
	asked   control.Asked
}

// picks says whether the person picks the apps: those that the client asked for, or where
// it did not say any, unless it was let in by the operator as one that keeps a secret.
func (a asking) picks() bool {
	return a.client.Public || a.client.Host != "" || len(a.asked.Apps) > 0
}

// reaches says whether the client is the built-in one for apps that are no websites.
func (a asking) reaches() bool { return a.ClientID == controlapi.ReachClient }

// Decide answers POST PathAuthorize: the consent page's two buttons. The query
// is the request once more and is checked as if it came for the first time.
func (h *Handler) Decide(w http.ResponseWriter, r *http.Request) error {
	a, ok, err := h.request(w, r)
	if !ok || err != nil {
		return err
	}
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	for _, name := range []string{"decision", "computer", "account", "client"} {
		if len(form[name]) > 1 {
			return refuse(codeInvalidRequest, "This form has a field twice. Open the page again.")
		}
	}
	// Another tab may have signed somebody else in since the page was shown.
	if shown := form.Get("account"); shown != "" && shown != a.session.Account.ID {
		return h.consent(w, r, http.StatusConflict, a, "You have signed in with another address meanwhile. Look once more.")
	}
	switch form.Get("decision") {
	case "deny":
		return h.backWith(w, r, a.Request, controlapi.CodeAccessDenied, "The person said no.")
	case "allow":
		return h.allow(w, r, a, form)
	default:
		return h.consent(w, r, http.StatusBadRequest, a, "Choose Allow or Deny.")
	}
}

func (h *Handler) allow(w http.ResponseWriter, r *http.Request, a asking, form url.Values) error {
	if form.Get("client") != a.client.Version {
		return h.consent(w, r, http.StatusConflict, a, "What the app says of itself has changed meanwhile. Look once more.")
	}
	computer, apps, problem := picked(a, form)
	if problem == "" && computer == "" {
		choices, err := h.people.Choices(r.Context(), a.session.Account.ID)
		if err != nil {
			return err
		}
		if len(choices) != 1 {
			problem = "Choose a computer first."
		} else {
			computer = choices[0].Computer.Name
		}
	}
	if problem != "" {
		return h.consent(w, r, http.StatusBadRequest, a, problem)
	}
	code, err := h.grants.Authorize(r.Context(), control.Authorization{
		ClientID: a.ClientID, RedirectURI: a.RedirectURI, Challenge: a.Challenge, Apps: apps, Asked: a.asked.Apps,
	}, a.session.Account, computer)
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		return h.consent(w, r, http.StatusForbidden, a, err.Error())
	}
	if err != nil {
		return h.refused(w, r, a.ClientID, err)
	}
	return h.back(w, r, a.Request, url.Values{"code": {code}})
}

// picked reads what the person lets the client into: apps of one computer, or with none
// all of it. A form that says nothing of apps lets it into those it asked for.
func picked(a asking, form url.Values) (computer string, apps []string, problem string) {
	switch {
	case !a.picks():
		return form.Get("computer"), nil, ""
	case len(form["app"]) == 0 && !form.Has("pick") && len(a.asked.Apps) > 0:
		return a.asked.Computer, a.asked.Apps, ""
	case len(form["app"]) == 0:
		return "", nil, "Choose an app first."
	}
	all := false
	for _, pick := range form["app"] {
		short, id, _ := strings.Cut(pick, "/")
		if computer == "" {
			computer = short
		}
		if short != computer || a.asked.Computer != "" && short != a.asked.Computer {
			return "", nil, "Choose apps of one computer only."
		}
		all = all || id == AllApps
		apps = append(apps, id)
	}
	if all {
		apps = nil
	}
	return computer, apps, ""
}

// request parses a request, and finds its client, who is signed in, and what it asks them
// for. ok is false when it has been answered. Only for somebody who is signed in does a
// client that describes itself get asked what it says.
func (h *Handler) request(w http.ResponseWriter, r *http.Request) (a asking, ok bool, err error) {
	ctx := r.Context()
	if a.Request, err = ParseRequest(r.URL.RawQuery); err != nil {
		return a, false, h.refused(w, r, "", err)
	}
	session, signedIn, err := h.pages.Session(w, r)
	if err != nil {
		return a, false, err
	}
	a.session = session
	describes := control.DescribesItself(a.ClientID)
	switch {
	case describes && signedIn:
		err = h.clients.Describe(ctx, session.Account.ID, a.ClientID)
	case describes:
		err = h.clients.MayDescribe(ctx, a.ClientID)
	}
	if err == nil && (signedIn || !describes) {
		a.client, err = h.clients.For(ctx, a.ClientID, a.RedirectURI)
	}
	switch {
	case err != nil:
		return a, false, h.refused(w, r, a.ClientID, err)
	case a.Problem != "" && (signedIn || !describes):
		return a, false, h.problem(w, r, a.Request)
	case !signedIn:
		return a, false, h.pages.SignIn(w, r, here(r))
	}
	a.asked, err = h.grants.Asked(ctx, session.Account.ID, a.ClientID, a.Resources)
	if control.IsRefusal(err, controlapi.CodeInvalidTarget) {
		a.Problem, a.Why = controlapi.CodeInvalidTarget, err.Error()
		return a, false, h.problem(w, r, a.Request)
	}
	return a, err == nil, err
}

// problem goes back to the client with what is wrong with its request.
func (h *Handler) problem(w http.ResponseWriter, r *http.Request, req Request) error {
	h.refusals.tell("an authorization request was refused", req.ClientID, req.Problem, req.Why)
	return h.backWith(w, r, req, req.Problem, req.Why)
}

// refused answers a refusal that must not go to the redirect URI: JSON to
// programs, and to browsers the caller's error page.
func (h *Handler) refused(w http.ResponseWriter, r *http.Request, client string, err error) error {
	var code string
	switch {
	case control.IsRefusal(err, controlapi.CodeInvalidClient):
		code = controlapi.CodeInvalidClient
	case control.IsRefusal(err, controlapi.CodeInvalidRedirectURI):
		code = controlapi.CodeInvalidRedirectURI
	case control.IsRefusal(err, codeInvalidRequest):
		code = codeInvalidRequest
	default:
		return err
	}
	h.refusals.tell("an authorization request was refused", client, code, err.Error())
	if !browser(r) {
		writeJSON(w, http.StatusBadRequest, failure{code, err.Error()})
		return nil
	}
	return refuse(code, err.Error())
}

// browser says whether a page is wanted.
func browser(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" || strings.Contains(r.Header.Get("Accept"), "text/html")
}

// here is the path of the request itself.
func here(r *http.Request) string { return controlapi.PathAuthorize + "?" + r.URL.RawQuery }

func (h *Handler) consent(w http.ResponseWriter, r *http.Request, status int, a asking, problem string) error {
	choices, err := h.people.Choices(r.Context(), a.session.Account.ID)
	if err != nil {
		return err
	}
	c := Consent{
		Client:  cmp.Or(a.client.Host, a.client.Name),
		Version: a.client.Version,
		Target:  target(a.RedirectURI),
		Source:  control.RedirectSource(a.RedirectURI),
		Account: a.session.Account,
		Choices: choices,
		Chosen:  a.asked.Computer,
		Picks:   a.picks(),
		Asked:   a.asked.Apps,
		One:     a.reaches(),
		Problem: problem,
		Return:  here(r),
	}
	if a.client.Host != "" || a.reaches() {
		c.Local = c.Target == ownComputer
	}
	if a.client.Host != "" {
		if a.client.Name != a.client.Host { // as one that claims no name is called
			c.Claimed = a.client.Name
		}
	}
	for i, m := range choices {
		choices[i].Apps = slices.DeleteFunc(slices.Clone(m.Apps), func(app control.InvitedApp) bool {
			return app.TCP != a.reaches() || a.reaches() && !slices.Contains(a.asked.Apps, app.ID)
		})
	}
	switch {
	case len(choices) == 0:
		status = http.StatusForbidden
	case c.Chosen == "":
		c.Chosen = choices[0].Computer.Name
	case c.Picks: // it asked for apps of this one
		c.Choices = slices.DeleteFunc(choices, func(m control.Membership) bool { return m.Computer.Name != c.Chosen })
	}
	return h.pages.Consent(w, r, status, c)
}

const ownComputer = "a program on your own computer"

// target is where a redirect URI leads, as a person reads it.
func target(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https":
		return u.Host
	case u.Scheme == "http": // registered for this computer alone
		return ownComputer
	default:
		return "the app on this device"
	}
}
