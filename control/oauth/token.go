package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// tokenResponse is the answer of the token endpoint (O8).
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	Address      string `json:"address"`
	Host         string `json:"host"`
}

// tokenRequest is a parsed form: one of exchange and refresh is meant, by
// grantType. What a parameter must look like beyond being there is for package
// control to say, after it has authenticated the client.
type tokenRequest struct {
	grantType string
	client    control.Credentials
	exchange  control.Exchange
	refresh   string
	resources []string // several may be named (RFC 8707)
	// incomplete is what is wrong with the parameters besides the client's; it
	// is told to authenticated clients only.
	incomplete error
}

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
)

// tokenFields may come once each.
var tokenFields = []string{
	"grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type",
	"code", "redirect_uri", "code_verifier", "refresh_token", "scope",
}

// Token answers every method on PathToken.
func (h *Handler) Token(w http.ResponseWriter, r *http.Request) error {
	return h.toProgram(w, r, h.tokens)
}

// Revoke answers every method on PathRevoke (RFC 7009).
func (h *Handler) Revoke(w http.ResponseWriter, r *http.Request) error {
	return h.toProgram(w, r, h.revoke)
}

// toProgram answers a form that a program posts. It writes the errors itself, because
// they look different here, and lets any site's script read the answer: what
// authenticates a client is in the request and never in a cookie. carryOut also says
// which client the form says it is of; nothing to say is an empty body.
func (h *Handler) toProgram(w http.ResponseWriter, r *http.Request, carryOut func(context.Context, []string, url.Values) (said any, client string, err error)) error {
	head := w.Header()
	AllowAnyOrigin(head, "POST, OPTIONS")
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		head.Set("Allow", "POST, OPTIONS")
		writeJSON(w, http.StatusMethodNotAllowed, failure{codeInvalidRequest, "This endpoint takes POST."})
		return nil
	}
	authorization := r.Header["Authorization"]
	form, err := readForm(w, r)
	var said any
	var client string
	if err == nil {
		said, client, err = carryOut(r.Context(), authorization, form)
	}
	switch {
	case err != nil:
		h.failed(w, r, err, client, len(authorization) > 0)
	case said == nil:
		head.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
	default:
		writeJSON(w, http.StatusOK, said)
	}
	return nil
}

func answerOf(tokens control.Tokens) tokenResponse {
	return tokenResponse{
		AccessToken:  tokens.Access,
		TokenType:    "Bearer",
		ExpiresIn:    int(controlapi.TokenLife / time.Second),
		RefreshToken: tokens.Refresh,
		Scope:        controlapi.TokenScope,
		Address:      tokens.Computer.URL,
		Host:         tokens.Computer.Host,
	}
}

func (h *Handler) tokens(ctx context.Context, authorization []string, form url.Values) (said any, client string, err error) {
	req, err := parseToken(authorization, form)
	if err != nil {
		return nil, req.client.ID, err
	}
	var tokens control.Tokens
	switch {
	case req.incomplete != nil:
		if err = h.clients.Authenticate(ctx, req.client); err == nil {
			err = req.incomplete
		}
	case req.grantType == grantCode:
		tokens, err = h.grants.Exchange(ctx, req.client, req.exchange, req.resources...)
	default:
		tokens, err = h.grants.Refresh(ctx, req.client, req.refresh, req.resources...)
	}
	return answerOf(tokens), req.client.ID, err
}

func (h *Handler) revoke(ctx context.Context, authorization []string, form url.Values) (said any, client string, err error) {
	if err := once(form, "client_id", "client_secret", "client_assertion", "client_assertion_type", "token", "token_type_hint"); err != nil {
		return nil, "", err
	}
	who, err := credentials(authorization, form)
	if err != nil {
		return nil, form.Get("client_id"), err
	}
	if err = h.grants.Revoke(ctx, who, form.Get("token")); err == nil && form.Get("token") == "" {
		err = malformed("The parameter token is missing.")
	}
	return nil, who.ID, err
}

// once refuses a form in which one of these comes twice: whatever reads the other one
// would see another request.
func once(form url.Values, names ...string) error {
	for _, name := range names {
		if len(form[name]) > 1 {
			return malformed("The parameter " + name + " is there twice.")
		}
	}
	return nil
}

// parseToken reads a token request.
func parseToken(authorization []string, form url.Values) (tokenRequest, error) {
	if err := once(form, tokenFields...); err != nil {
		return tokenRequest{}, err
	}
	req := tokenRequest{grantType: form.Get("grant_type"), resources: form["resource"]}
	if req.grantType != grantCode && req.grantType != grantRefresh {
		return tokenRequest{}, &controlapi.Error{
			Code: controlapi.CodeUnsupportedGrantType, Message: "The grant type must be authorization_code or refresh_token.",
		}
	}
	var err error
	if req.client, err = credentials(authorization, form); err != nil {
		req.client.ID = form.Get("client_id")
		return req, err
	}
	if req.grantType == grantCode && req.client.ID == "" && req.client.Assertion == "" { // a refresh token says itself whose it is
		return tokenRequest{}, &controlapi.Error{Code: controlapi.CodeInvalidClient, Message: "The parameter client_id is missing."}
	}
	if !scopeGiven(form["scope"]) {
		req.incomplete = &controlapi.Error{Code: codeInvalidScope, Message: onlyScope, HTTPStatus: http.StatusBadRequest}
	}
	if req.grantType == grantRefresh {
		req.refresh = form.Get("refresh_token")
		if req.refresh == "" {
			req.incomplete = malformed("The parameter refresh_token is missing.")
		}
		return req, nil
	}
	req.exchange = control.Exchange{
		Code: form.Get("code"), RedirectURI: form.Get("redirect_uri"), Verifier: form.Get("code_verifier"),
	}
	for _, name := range []string{"code", "redirect_uri", "code_verifier"} {
		if form.Get(name) == "" {
			req.incomplete = malformed("The parameter " + name + " is missing.")
			break
		}
	}
	return req, nil
}

// credentials finds what the client authenticates with: HTTP Basic, whose two
// halves are form-encoded (RFC 6749, section 2.3.1), or the form, with a secret or an
// assertion (RFC 7521, section 4.2). Two at once are refused (RFC 6749, section 2.3), but
// for a client_id that says the same.
func credentials(authorization []string, form url.Values) (control.Credentials, error) {
	inForm := control.Credentials{ID: form.Get("client_id"), Secret: form.Get("client_secret"), Assertion: form.Get("client_assertion")}
	switch {
	case inForm.Assertion == "" && !form.Has("client_assertion_type"):
	case inForm.Assertion == "" || form.Get("client_assertion_type") != control.AssertionType:
		return noCredentials("A client_assertion comes with the client_assertion_type " + control.AssertionType + ".")
	case inForm.Secret != "" || len(authorization) > 0:
		return noCredentials("The client authenticates in two ways at once: by a client_assertion and by a secret.")
	}
	if len(authorization) == 0 {
		if inForm == (control.Credentials{}) {
			return noCredentials("The client's id and secret are missing: send both in the form, or by HTTP Basic.")
		}
		return inForm, nil // without a secret it is a public client, or refused as one that needs it
	}
	if len(authorization) > 1 {
		return noCredentials("There are two Authorization headers.")
	}
	basic, err := basicCredentials(authorization[0])
	switch {
	case err != nil:
		return control.Credentials{}, err
	case inForm.Secret != "":
		return noCredentials("The client authenticates in two ways at once: by HTTP Basic and in the form.")
	case inForm.ID != "" && inForm.ID != basic.ID:
		return noCredentials("The client_id in the form is another than that of HTTP Basic.")
	}
	return basic, nil
}

func noCredentials(sentence string) (control.Credentials, error) {
	return control.Credentials{}, &controlapi.Error{Code: controlapi.CodeInvalidClient, Message: sentence}
}

// basicCredentials reads id and secret of an Authorization header.
func basicCredentials(authorization string) (control.Credentials, error) {
	scheme, encoded, _ := strings.Cut(authorization, " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if !strings.EqualFold(scheme, "Basic") || err != nil {
		return noCredentials("The Authorization header is not HTTP Basic.")
	}
	first, second, ok := strings.Cut(string(raw), ":")
	id, err1 := url.QueryUnescape(first)
	secret, err2 := url.QueryUnescape(second)
	if !ok || err1 != nil || err2 != nil || id == "" || secret == "" {
		return noCredentials("The Authorization header holds no id and secret.")
	}
	return control.Credentials{ID: id, Secret: secret}, nil
}

// failed writes an error (docs/interface.md, Errors). A client that tried HTTP
// Basic is told so with 401, every other refusal is 400.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, err error, client string, basic bool) {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok {
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return // nobody waits for the answer
		}
		h.log.Error("a token request failed", "err", err)
		if away, ok := control.Away(err); ok {
			notNow(w, away)
			return
		}
		writeJSON(w, http.StatusInternalServerError, failure{codeServerError, "Something went wrong on this side. Try again later."})
		return
	}
	if refusal.Code == controlapi.CodeUnavailable || refusal.Code == controlapi.CodeSuspended { // clients keep what they have
		h.refusals.tell("a token request was put off", client, refusal.Code, refusal.Message)
		notNow(w, refusal)
		return
	}
	status := http.StatusBadRequest
	if refusal.HTTPStatus != 0 {
		status = refusal.HTTPStatus
	}
	if refusal.Code == controlapi.CodeInvalidClient && basic {
		w.Header().Set("WWW-Authenticate", `Basic realm="porchlight", charset="UTF-8"`)
		status = http.StatusUnauthorized
	}
	h.refusals.tell("a token request was refused", client, refusal.Code, refusal.Message)
	writeJSON(w, status, failure{refusal.Code, refusal.Message})
}

// notNow answers what passes.
func notNow(w http.ResponseWriter, refusal *controlapi.Error) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
	writeJSON(w, http.StatusServiceUnavailable, failure{codeTemporarilyUnavailable, refusal.Message})
}
