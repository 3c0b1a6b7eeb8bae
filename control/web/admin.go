package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Who gets to /admin. Whoever has no session there is asked to sign in by a passkey, operator
// or not, and for every path alike; whoever did and is no operator finds nothing there. The
// forms need the token of their session besides, and there is no other way: no link opens it.

const (
	pathAdmin = "/admin"
	// sealAdmin is what the token in its forms is sealed for.
	sealAdmin = "admin form"
)

// adminPath is a page of /admin that signing in leads back to.
var adminPath = regexp.MustCompile(`^/admin(/[a-z0-9][a-z0-9-]{0,63}){0,2}$`)

// toAdmin is a page of /admin; anything else there is its first one.
func (h *handler) toAdmin(path string) destination {
	if !adminPath.MatchString(path) {
		path = pathAdmin
	}
	to := destination{path: path, purpose: words.Of("to run this server"), proofs: []controlapi.Proof{controlapi.ProofPasskey}}
	if h.adminAt != h.svc.AuthURL() {
		to.leads = h.adminAt
	}
	return to
}

// isAdmin says whether a path is of /admin.
func isAdmin(path string) bool { return path == pathAdmin || strings.HasPrefix(path, pathAdmin+"/") }

// operator is who asks, once entered.
type operator struct {
	control.Account
	form string // token of the forms
}

type operatorKey struct{}

// operatorOf is who was let in to this request.
func operatorOf(r *http.Request) operator {
	o, _ := r.Context().Value(operatorKey{}).(operator)
	return o
}

// entered lets an operator in, and nobody else: ok is false where the answer is written
// already, or is err.
func (h *handler) entered(w http.ResponseWriter, r *http.Request) (ok bool, err error) {
	head := w.Header()
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	token := cookie(r, h.admin)
	account, err := h.svc.Operators.Entered(r.Context(), token)
	if control.IsRefusal(err, controlapi.CodeUnauthorized) {
		return false, h.enterAdmin(w, r)
	}
	if err != nil {
		return false, err
	}
	o := operator{account, h.formToken(token)}
	*r = *r.WithContext(context.WithValue(r.Context(), operatorKey{}, o))
	h.letIn(r)
	if r.Method != http.MethodPost {
		return true, nil
	}
	f, err := form(w, r)
	if err != nil {
		return false, err
	}
	// Rotating the keys has it sealed by another one; the page is opened again then.
	if subtle.ConstantTimeCompare([]byte(f.Get("form")), []byte(o.form)) != 1 {
		return false, invalid("This form was not sent by its page. Open the page again.")
	}
	return true, nil
}

// formToken is the token of the forms of a session, which does not tell that of the session:
// no script reads the cookie, and none could read it from a page.
func (h *handler) formToken(session string) string {
	sum := sha256.Sum256([]byte(session))
	return h.svc.Keys.Seal(sealAdmin, hex.EncodeToString(sum[:]))
}

// enterAdmin opens a session at /admin for who has just shown a passkey and is an operator.
// Everybody else is asked to sign in; only who did so by a passkey hears that there is nothing.
func (h *handler) enterAdmin(w http.ResponseWriter, r *http.Request) error {
	path := pathAdmin
	if r.Method == http.MethodGet {
		path = r.URL.Path
	}
	to := h.toAdmin(path)
	session, ok, err := h.current(w, r)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(w, r, h.svc.AuthURL()+signInPath("/signin", to))
	}
	token, err := h.svc.Operators.Enter(r.Context(), session)
	if control.IsRefusal(err, controlapi.CodeUnauthorized) {
		if h.adminAt == h.svc.AuthURL() {
			return h.askProof(w, r, session, to)
		}
		return seeOther(w, r, h.svc.AuthURL()+signInPath("/signin", to))
	}
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: h.admin, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return seeOther(w, r, to.path)
}

// isHere says whether a request is for the host that this handler answers as.
func (h *handler) isHere(r *http.Request) bool {
	return "https://"+strings.TrimSuffix(strings.ToLower(r.Host), ":443") == h.at
}

// serveAdminAPI has programs answered. It has nothing to do with the sessions of browsers.
func (h *handler) serveAdminAPI(w http.ResponseWriter, r *http.Request) error {
	if !h.isHere(r) {
		return &controlapi.Error{Code: controlapi.CodeNotFound, Message: "There is nothing at this address.", HTTPStatus: http.StatusMisdirectedRequest}
	}
	h.adminAPI.ServeHTTP(w, r)
	return nil
}

func (h *handler) leaveAdmin(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	if err := h.svc.Operators.Leave(r.Context(), cookie(r, h.admin)); err != nil {
		return err
	}
	dropCookie(w, h.admin)
	dropCookie(w, h.session)
	return seeOther(w, r, h.svc.AuthURL()+"/signin")
}

// adminTab is one of the pages that each of them leads to.
type adminTab struct {
	Path string
	Name words.Sentence
}

var adminTabs = []adminTab{
	{pathAdmin, words.Of("Overview")}, {pathAdmin + "/accounts", words.Of("Accounts")}, {pathAdmin + "/computers", words.Of("Computers")},
	{pathAdmin + "/nodes", words.Of("Nodes")}, {pathAdmin + "/mails", words.Of("Mail")}, {pathAdmin + "/clients", words.Of("Clients")},
	{pathAdmin + "/suspensions", words.Of("Suspensions")}, {pathAdmin + "/tokens", words.Of("Tokens")}, {pathAdmin + "/audit", words.Of("Audit")},
}

// adminPage is what a page of /admin shows. All but the first are of one page each.
type adminPage struct {
	Operator string
	Form     string // token of the forms
	Tabs     []adminTab
	Tab      string // which of them it belongs to, by its path
	Style    string // path of the asset
	Auth     string // address of the auth host, where it is not this one

	Overview *adminOverview
	Found    *adminFound
	List     *adminList
	Thing    *adminThing
	Nodes    *adminNodes
	Ends     *adminEnds
}

// showAdmin shows a page of /admin.
func (h *handler) showAdmin(w http.ResponseWriter, r *http.Request, status int, name, tab string, p page, with func(*adminPage)) error {
	o := operatorOf(r)
	p.Admin = &adminPage{Operator: o.Email, Form: o.form, Tabs: adminTabs, Tab: tab, Style: adminStylePath}
	with(p.Admin)
	if h.adminAt != h.svc.AuthURL() {
		p.Admin.Auth = h.svc.AuthURL()
		p.formTarget = p.Admin.Auth // where signing out leads
	}
	return h.show(w, r, status, name, p)
}

// adminRoutes are those of /admin.
func (h *handler) adminRoutes() []route {
	return []route{
		{"GET", pathAdmin, tierAdmin, h.adminOverview},
		{"GET", pathAdmin + "/find", tierAdmin, h.adminFind},
		{"GET", pathAdmin + "/accounts", tierAdmin, h.adminAccounts},
		{"GET", pathAdmin + "/accounts/{id}", tierAdmin, h.adminAccount},
		{"GET", pathAdmin + "/computers", tierAdmin, h.adminComputers},
		{"GET", pathAdmin + "/computers/{id}", tierAdmin, h.adminComputer},
		{"GET", pathAdmin + "/nodes", tierAdmin, h.adminNodes},
		{"GET", pathAdmin + "/mails", tierAdmin, h.adminMails},
		{"GET", pathAdmin + "/clients", tierAdmin, h.adminClients},
		{"GET", pathAdmin + "/suspensions", tierAdmin, h.adminSuspensions},
		{"GET", pathAdmin + "/suspend", tierAdmin, queried(h.suspendForm)},
		{"POST", pathAdmin + "/suspend", tierAdmin, posted(h.suspend)},
		{"GET", pathAdmin + "/resume", tierAdmin, queried(h.resumeForm)},
		{"POST", pathAdmin + "/resume", tierAdmin, posted(h.resume)},
		{"GET", pathAdmin + "/tokens", tierAdmin, h.adminTokens},
		{"GET", pathAdmin + "/tokens/{id}", tierAdmin, h.adminToken},
		{"POST", pathAdmin + "/tokens/end", tierAdmin, posted(h.endToken)},
		{"GET", pathAdmin + "/audit", tierAdmin, h.adminAudit},
		{"GET", pathAdmin + "/audit/export", tierAdmin, h.exportAudit},
		{"POST", pathAdmin + "/audit/verify", tierAdmin, posted(h.verifyAudit)},
		{"POST", pathAdmin + "/signout", tierAdmin, posted(h.leaveAdmin)},
	}
}
