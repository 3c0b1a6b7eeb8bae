// Package oauth is the HTTP side of OAuth for remote clients: the authorization
// endpoint with its consent page, and those for tokens and their revocation
// (docs/interface.md, OAuth; RFC 6749, RFC 7636 and RFC 7009).
//
// A request is parsed once, strictly, into a value that is well formed; package
// control decides and stores; what goes out is a redirect to a registered
// address, a page, or JSON. Nobody is ever redirected to an address that is not
// registered for the client, and no code is used up for a client that has not
// proved who it is.
//
// The pages themselves are drawn by whoever mounts this package; see Pages.
package oauth

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// maxForm bounds a posted form, in bytes.
const maxForm = 16 << 10

// These codes are RFC 6749's, for what no other code is there for: a body that is
// not a form, scopes without the one there is, our own failures, and a store that
// is away for now.
const (
	codeInvalidRequest         = "invalid_request"
	codeInvalidScope           = "invalid_scope"
	codeServerError            = "server_error"
	codeTemporarilyUnavailable = "temporarily_unavailable"
)

// Pages draws what people see and knows who is signed in.
type Pages interface {
	// Session is that of the browser; ok is false when it is signed out.
	Session(w http.ResponseWriter, r *http.Request) (session control.Session, ok bool, err error)
	// SignIn sends the browser to sign in, and back to a path of ours.
	SignIn(w http.ResponseWriter, r *http.Request, back string) error
	// Consent shows the consent page.
	Consent(w http.ResponseWriter, r *http.Request, status int, c Consent) error
}

// Consent is what the consent page says. Its form posts to the address it is
// shown at: decision (allow or deny), account, client, and computer (short name) or, where the
// person picks apps, pick and of each app its computer's short name, a slash and its id, or
// AllApps.
type Consent struct {
	Client  string // name of the app that asks; the host of one that describes itself
	Claimed string // as such a one calls itself, for what that is worth
	Local   bool   // such a one is to be answered on the person's own computer
	Version string // of what it says of itself: the form says it as client
	Target  string // where the browser goes afterwards, for a person to read
	Source  string // the same for Content-Security-Policy's form-action
	Account control.Account
	Choices []control.Membership // computers to choose from
	Chosen  string               // short name of the one preselected
	Picks   bool                 // the person picks apps, of one computer
	Asked   []string             // ids of apps on Chosen: those that are asked for, and preselected
	One     bool                 // it can be let into what it asks for and no more
	Problem string               // a sentence about what was wrong with the last answer
	Return  string               // path of this page
}

// AllApps in place of an app's id are all of its computer, later ones too.
const AllApps = "*"

// Handler of the endpoints. Its methods return errors that are not about OAuth,
// or that only a person can be told, for the caller's error page.
type Handler struct {
	clients  *control.Clients
	grants   *control.Grants
	people   *control.People
	pages    Pages
	issuer   func() string // as in Metadata
	log      *slog.Logger
	refusals refusals
}

// New makes the handler; issuer is the auth URL, https://host[:port].
func New(clients *control.Clients, grants *control.Grants, people *control.People, pages Pages, issuer func() string, log *slog.Logger) *Handler {
	return &Handler{clients: clients, grants: grants, people: people, pages: pages, issuer: issuer, log: log, refusals: refusals{log: log, now: time.Now}}
}

// readForm reads a posted form of ours, whose Content-Type and size are those of
// one.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, &controlapi.Error{
			Code: codeInvalidRequest, HTTPStatus: http.StatusUnsupportedMediaType,
			Message: "The body must be application/x-www-form-urlencoded.",
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &controlapi.Error{
			Code: codeInvalidRequest, HTTPStatus: http.StatusRequestEntityTooLarge, Message: "The form is too large.",
		}
	}
	if err != nil {
		return nil, &controlapi.Error{
			Code: codeInvalidRequest, HTTPStatus: http.StatusBadRequest, Message: "The form could not be read.",
		}
	}
	return parseForm(string(body))
}

// parseForm refuses what is malformed, as parameters that are wrong are refused
// everywhere here.
func parseForm(body string) (url.Values, error) {
	form, err := url.ParseQuery(body)
	if err != nil {
		return nil, malformed("The form is not encoded as one.")
	}
	return form, nil
}

const onlyScope = "scope must have connect among what it names, or be left out."

// scopeGiven says whether a request that asks for these scopes is given the one
// there is. It may leave it out, and what else it names it does not get (RFC 6749,
// section 3.3).
func scopeGiven(asked []string) bool {
	return len(asked) == 0 || len(asked) == 1 && (asked[0] == "" || slices.Contains(strings.Fields(asked[0]), controlapi.TokenScope))
}

// malformed is a bad or missing parameter. There is no code of its own for that
// (docs/interface.md, Errors); invalid_grant is the one every client understands
// as "begin again".
func malformed(sentence string) error {
	return &controlapi.Error{Code: controlapi.CodeInvalidGrant, Message: sentence, HTTPStatus: http.StatusBadRequest}
}

// failure is an error of docs/interface.md, Errors: {error: code}, with what was
// wrong beside it (RFC 6749, section 5.2): a sentence in ASCII for the client's
// author.
type failure struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// clientOf is a client's id as it can stand in the log: what has not the form of
// one is anybody's text.
func clientOf(id string) string {
	if !control.IsClientID(id) {
		return "not an id"
	}
	return id
}

// AllowAnyOrigin lets the scripts of any site read an answer that no cookie had a
// part in.
func AllowAnyOrigin(head http.Header, methods string) {
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Allow-Methods", methods)
	head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, *") // * does not stand for Authorization
	head.Set("Access-Control-Expose-Headers", "*")
	head.Set("Access-Control-Max-Age", "3600")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Pragma", "no-cache") // RFC 6749, section 5.1
	controlapi.WriteJSON(w, status, v)
}

// refusalsPerMinute is how many refusals the log names in a minute: anybody can
// cause as many as they like, and must not fill the operator's disk.
const refusalsPerMinute = 60

// refusals tell the operator why clients were refused, for their authors to ask.
type refusals struct {
	log    *slog.Logger
	now    func() time.Time
	minute bounds.Minute
}

// tell logs a refusal of a client, whose id anybody may have made up.
func (r *refusals) tell(what, client, code, why string) {
	count := r.minute.Count(r.now())
	if count <= refusalsPerMinute {
		r.log.Info(what, "client", clientOf(client), "code", code, "why", why)
	}
	if count == refusalsPerMinute {
		r.log.Warn("many OAuth requests are refused; further refusals of this minute are not logged")
	}
}

// metadata describes the endpoints (RFC 8414, section 2).
type metadata struct {
	Issuer           string   `json:"issuer"`
	Authorize        string   `json:"authorization_endpoint"`
	Token            string   `json:"token_endpoint"`
	Revoke           string   `json:"revocation_endpoint"` // RFC 7009
	Keys             string   `json:"jwks_uri"`
	Scopes           []string `json:"scopes_supported"`
	ResponseTypes    []string `json:"response_types_supported"`
	ResponseModes    []string `json:"response_modes_supported"`
	GrantTypes       []string `json:"grant_types_supported"`
	TokenAuth        []string `json:"token_endpoint_auth_methods_supported"`
	TokenAlgs        []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevokeAuth       []string `json:"revocation_endpoint_auth_methods_supported"`
	RevokeAlgs       []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	ChallengeMethods []string `json:"code_challenge_methods_supported"`
	SaysIssuer       bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	// Documents is of draft-ietf-oauth-client-id-metadata-document.
	Documents bool `json:"client_id_metadata_document_supported,omitempty"`
}

// Metadata describes the endpoints at authURL, https://host[:port], where clients may
// describe themselves or not.
func Metadata(authURL string, documents bool) any {
	auth := []string{"client_secret_basic", "client_secret_post", "none", "private_key_jwt"} // none: public clients
	var algs []string
	for _, alg := range control.AssertionAlgorithms {
		algs = append(algs, string(alg))
	}
	return metadata{
		Issuer:           authURL,
		Authorize:        authURL + controlapi.PathAuthorize,
		Token:            authURL + controlapi.PathToken,
		Revoke:           authURL + controlapi.PathRevoke,
		Keys:             authURL + controlapi.PathKeySet,
		Scopes:           []string{controlapi.TokenScope},
		ResponseTypes:    []string{"code"},
		ResponseModes:    []string{"query"},
		GrantTypes:       []string{grantCode, grantRefresh},
		TokenAuth:        auth,
		TokenAlgs:        algs,
		RevokeAuth:       auth,
		RevokeAlgs:       algs,
		ChallengeMethods: []string{"S256"},
		SaysIssuer:       true,
		Documents:        documents,
	}
}
