package oauth

import (
	"net/http"
	"net/url"
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
	req, client, ok, err := h.request(w, r)
	if !ok || err != nil {
		return err
	}
	session, signedIn, err := h.pages.Session(w, r)
	if err != nil {
		return err
	}
	if !signedIn {
		return h.pages.SignIn(w, r, here(r))
	}
	return h.consent(w, r, http.StatusOK, req, client, session, "")
}

// Decide answers POST PathAuthorize: the consent page's two buttons. The query
// is the request once more and is checked as if it came for the first time.
func (h *Handler) Decide(w http.ResponseWriter, r *http.Request) error {
	req, client, ok, err := h.request(w, r)
	if !ok || err != nil {
		return err
	}
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	for _, name := range []string{"decision", "computer", "account"} {
		if len(form[name]) > 1 {
			return refuse(codeInvalidRequest, "This form has a field twice. Open the page again.")
		}
	}
	session, signedIn, err := h.pages.Session(w, r)
	if err != nil {
		return err
	}
	if !signedIn {
		return h.pages.SignIn(w, r, here(r))
	}
	// Another tab may have signed somebody else in since the page was shown.
	if shown := form.Get("account"); shown != "" && shown != session.Account.ID {
		return h.consent(w, r, http.StatusConflict, req, client, session,
			"You have signed in with another address meanwhile. Look once more.")
	}
	switch form.Get("decision") {
	case "deny":
		return h.backWith(w, r, req, controlapi.CodeAccessDenied, "The person said no.")
	case "allow":
		return h.allow(w, r, req, client, session, form.Get("computer"))
	default:
		return h.consent(w, r, http.StatusBadRequest, req, client, session, "Choose Allow or Deny.")
	}
}

func (h *Handler) allow(w http.ResponseWriter, r *http.Request, req Request, client control.Client, session control.Session, computer string) error {
	if computer == "" {
		choices, err := h.people.Choices(r.Context(), session.Account.ID)
		if err != nil {
			return err
		}
		if len(choices) != 1 {
			return h.consent(w, r, http.StatusBadRequest, req, client, session, "Choose a computer first.")
		}
		computer = choices[0].Computer.Name
	}
	code, err := h.grants.Authorize(r.Context(), control.Authorization{
		ClientID: req.ClientID, RedirectURI: req.RedirectURI, Challenge: req.Challenge,
	}, session.Account, computer)
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		return h.consent(w, r, http.StatusForbidden, req, client, session, err.Error())
	}
	if err != nil {
		return h.refused(w, r, req.ClientID, err)
	}
	return h.back(w, r, req, url.Values{"code": {code}})
}

// request parses a request and finds its client. ok is false when it has been
// answered.
func (h *Handler) request(w http.ResponseWriter, r *http.Request) (req Request, client control.Client, ok bool, err error) {
	if req, err = ParseRequest(r.URL.RawQuery); err == nil {
		client, err = h.clients.For(r.Context(), req.ClientID, req.RedirectURI)
	}
	if err != nil {
		return req, client, false, h.refused(w, r, req.ClientID, err)
	}
	if req.Problem != "" {
		h.told.tell("an authorization request was refused", req.ClientID, req.Problem, req.Why)
		return req, client, false, h.backWith(w, r, req, req.Problem, req.Why)
	}
	return req, client, true, nil
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
	h.told.tell("an authorization request was refused", client, code, err.Error())
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

func (h *Handler) consent(w http.ResponseWriter, r *http.Request, status int, req Request, client control.Client, session control.Session, problem string) error {
	choices, err := h.people.Choices(r.Context(), session.Account.ID)
	if err != nil {
		return err
	}
	c := Consent{
		Client:  client.Name,
		Target:  target(req.RedirectURI),
		Source:  control.RedirectSource(req.RedirectURI),
		Account: session.Account,
		Choices: choices,
		Problem: problem,
		Return:  here(r),
	}
	if len(choices) > 0 {
		c.Chosen = choices[0].Computer.Name
	} else {
		status = http.StatusForbidden
	}
	return h.pages.Consent(w, r, status, c)
}

// target is where a redirect URI leads, as a person reads it.
func target(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https":
		return u.Host
	case u.Scheme == "http": // registered for this computer alone
		return "a program on your own computer"
	default:
		return "the app on this device"
	}
}
