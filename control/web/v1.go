package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/oauth"
)

// bearer returns the credential of a request, or "".
func bearer(r *http.Request) string {
	scheme, credential, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return credential
}

// isBefore says whether an agent is of before version 0.1.0.
func isBefore(r *http.Request) bool { return r.Header.Get(controlapi.HeaderProtocol) == "" }

// deviceHandler serves a computer whose credential is good.
type deviceHandler func(http.ResponseWriter, *http.Request, controlapi.Computer) error

// device lets in programs with the credential of a computer, as often as computers
// may ask.
func (h *handler) device(serve deviceHandler) serveFunc {
	return h.paced(serve, false)
}

// visited is device for what a visitor has the computer ask.
func (h *handler) visited(serve deviceHandler) serveFunc {
	return h.paced(serve, true)
}

func (h *handler) paced(serve deviceHandler, visits bool) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		computer, err := h.svc.Agents.AuthenticateFrom(r.Context(), bearer(r), clientAddr(r), visits)
		if err != nil {
			return err
		}
		h.letIn(r)
		if isBefore(r) && r.Method != http.MethodDelete { // it may still leave
			return controlapi.Outdated()
		}
		ctx := kv.WithTries(r.Context(), "computer "+computer.ID)
		if visits { // its visitors must not keep the computer's own from the store
			ctx = kv.WithTurn(r.Context(), "visits "+computer.ID)
		}
		return serve(w, r.WithContext(ctx), computer)
	}
}

// outdated is told to whoever asks what no agent of this version asks.
func outdated(http.ResponseWriter, *http.Request, controlapi.Computer) error {
	return controlapi.Outdated()
}

// asked serves what a computer sends in JSON: it is answered with what call makes of it.
func asked[Ask, Answer any](call func(ctx context.Context, computerID string, ask Ask) (Answer, error)) deviceHandler {
	return func(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
		var body Ask
		if err := readJSON(w, r, &body); err != nil {
			return err
		}
		made, err := call(r.Context(), c.ID, body)
		return reply(w, made, err)
	}
}

// noted is asked for what needs no answer.
func noted[Ask any](call func(ctx context.Context, computerID string, ask Ask) error) deviceHandler {
	return func(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
		var body Ask
		if err := readJSON(w, r, &body); err != nil {
			return err
		}
		if err := call(r.Context(), c.ID, body); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func (h *handler) listDomains(w http.ResponseWriter, r *http.Request, c controlapi.Computer) error {
	all, err := h.svc.Domains.List(r.Context(), c.ID)
	return reply(w, all, err)
}

const getOrOptions = "GET, OPTIONS"

// published serves what any site's script may read, and keep for so long.
func published(kept time.Duration, what func() any) serveFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		oauth.AllowAnyOrigin(w.Header(), getOrOptions)
		w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%.0f", kept.Seconds()))
		controlapi.WriteJSON(w, http.StatusOK, what())
		return nil
	}
}

func preflight(w http.ResponseWriter, _ *http.Request) error {
	oauth.AllowAnyOrigin(w.Header(), getOrOptions)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) publicKey() any { return controlapi.PublicKey{PublicKey: h.svc.Keys.Signing()} }

// keySet is publicKey with the keys before it, for those who verify by the kid of a token.
func (h *handler) keySet() any { return h.svc.Keys.Set() }

// discovery describes the OAuth endpoints (RFC 8414), so that a client needs no
// more than the address. The issuer there is that address; the iss of a token
// says "service-control" (docs/interface.md, Access token).
// Without the store it says what holds everywhere.
func (h *handler) discovery(w http.ResponseWriter, r *http.Request) error {
	hosts, _ := h.svc.Clients.Hosts(r.Context())
	return published(time.Hour, func() any { return oauth.Metadata(h.svc.AuthURL(), len(hosts) > 0) })(w, r)
}

// noOpenID tells a client that looks for either document, and whose scripts may read that,
// that there is none of OpenID Connect.
func noOpenID(w http.ResponseWriter, _ *http.Request) error {
	oauth.AllowAnyOrigin(w.Header(), getOrOptions)
	return notFound()
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write([]byte("ok\n"))
	return nil
}

// pathSecurity and securityKept are of RFC 9116: where the file is, and for how long what
// it says may be relied on.
const (
	pathSecurity = "/.well-known/security.txt"
	securityKept = 30 * 24 * time.Hour
)

// securityText says where a weakness is reported, if the operator does.
func (h *handler) securityText(w http.ResponseWriter, _ *http.Request) error {
	if h.contact == "" {
		return notFound()
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	fmt.Fprintf(w, "Contact: %s\nExpires: %s\nCanonical: %s\n",
		h.contact, h.now().Add(securityKept).UTC().Format(time.RFC3339), h.svc.AuthURL()+pathSecurity)
	return nil
}

// visit is where an agent sends a browser without a session: to the sign-in
// page, to the app with a code, or to the page that says no.
func (h *handler) visit(w http.ResponseWriter, r *http.Request) error {
	v, err := h.svc.Visits.Parse(r.Context(), r.URL.RawQuery)
	if err != nil {
		return err
	}
	here := destination{path: controlapi.PathVisit + "?" + r.URL.RawQuery, host: v.Host, leads: v.Origin(), proofs: v.Proofs}
	session, ok, err := h.visiting(w, r, v.Computer)
	if err != nil {
		return err
	}
	if !ok {
		return seeOther(w, r, signInPath("/signin", here))
	}
	to, err := h.svc.Visits.Begin(r.Context(), v, session)
	if control.IsRefusal(err, controlapi.CodeForbidden) {
		return h.showDoor(w, r, http.StatusForbidden, here, v.Door(), session)
	}
	if errors.Is(err, control.ErrProof) {
		return h.askProof(w, r, session, here)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, to)
}
