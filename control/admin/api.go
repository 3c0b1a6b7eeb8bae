package admin

import (
	"cmp"
	"context"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// APIPath is where API has to be mounted.
const APIPath = "/admin/api/"

// API is what programs may ask with a token, below APIPath: the overview, suspending and
// resuming. Nothing else of an Admin is reached by it. Browsers get nothing: whatever has an
// Origin is refused, and no answer allows one.
func (a *Admin) API() http.Handler {
	mux := http.NewServeMux()
	const below = "/admin/api"
	for _, r := range a.overviewRoutes(below) {
		mux.Handle(r.method+" "+r.path, a.withToken(control.ScopeRead, r))
	}
	mux.Handle("POST "+below+"/suspensions", a.withToken(control.ScopeSuspend, route{"POST", below + "/suspensions", a.suspend}))
	mux.Handle("POST "+below+"/suspensions/end", a.withToken(control.ScopeSuspend, route{"POST", below + "/suspensions/end", a.resume}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if _, known := mux.Handler(r); known == "" {
			answerRefusal(w, &controlapi.Error{Code: controlapi.CodeNotFound, Message: "There is nothing of that path and method.", HTTPStatus: http.StatusNotFound})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// actorKey is the context's of who acts, where it is not the command line.
type actorKey struct{}

// actor is who asks.
func actor(ctx context.Context) string {
	by, _ := ctx.Value(actorKey{}).(string)
	return cmp.Or(by, control.ByCommandLine)
}

// withToken serves a route to programs whose token may.
func (a *Admin) withToken(scope control.TokenScope, rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		token, err := a.authorized(r, scope)
		if err == nil {
			r = r.WithContext(context.WithValue(r.Context(), actorKey{}, token.By()))
			err = rt.serve(w, r)
		}
		if token.ID != "" { // also of what it may not do
			a.noteToken(token, rt, err)
		}
		if err == nil {
			return
		}
		answerRefusal(w, a.refusalTo(rt, err))
	})
}

// authorized is the token that a request has, which may do that.
func (a *Admin) authorized(r *http.Request, scope control.TokenScope) (control.AdminToken, error) {
	if r.Header.Get("Origin") != "" {
		return control.AdminToken{}, &controlapi.Error{Code: controlapi.CodeForbidden, Message: "This is for programs, and not for pages in a browser."}
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost && kind != "application/json" {
		return control.AdminToken{}, refuse("Send JSON, with its Content-Type.")
	}
	scheme, presented, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		presented = ""
	}
	// Whoever makes tokens up waits for others who do, and for nobody else's questions.
	return a.cfg.Tokens.Use(kv.WithTurn(r.Context(), "admin tokens"), presented, scope)
}

// refusalTo is what a program is told: of what went wrong here only that.
func (a *Admin) refusalTo(rt route, err error) *controlapi.Error {
	refusal, ok := errors.AsType[*controlapi.Error](err)
	if !ok {
		if refusal, ok = control.Away(err); !ok {
			a.cfg.Log.Error("an administrative request failed", "route", rt.path, "err", err)
			refusal = &controlapi.Error{Code: controlapi.CodeInternal, Message: "Something went wrong here. The log of the service says what."}
		}
	}
	answer := *refusal
	answer.HTTPStatus = cmp.Or(answer.HTTPStatus, map[string]int{
		controlapi.CodeUnauthorized: http.StatusUnauthorized, controlapi.CodeForbidden: http.StatusForbidden, controlapi.CodeNotFound: http.StatusNotFound,
		controlapi.CodeInternal: http.StatusInternalServerError, controlapi.CodeUnavailable: http.StatusServiceUnavailable,
	}[answer.Code], http.StatusBadRequest)
	return &answer
}

func answerRefusal(w http.ResponseWriter, refusal *controlapi.Error) {
	switch refusal.HTTPStatus {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="porchlight-admin"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(refusal.RetryAfter.Seconds())))))
	}
	controlapi.WriteJSON(w, refusal.HTTPStatus, refusal)
}

// readNoted is how often that a token reads a list is kept: a program may do so each second.
const readNoted = time.Hour

// noteToken keeps what a token did. What was suspended is kept by Suspensions, too.
func (a *Admin) noteToken(token control.AdminToken, rt route, err error) {
	what := rt.method + " " + rt.path
	if err != nil {
		what += ", refused"
	}
	if rt.method == http.MethodGet && !a.first(token.ID+" "+what) {
		return
	}
	a.cfg.Audit.Add(audit.Event{Kind: "operator", By: token.By(), What: what})
}

// first says whether that was not so in the last hour. There are few tokens and routes, and
// those of tokens that ended are forgotten.
func (a *Admin) first(what string) bool {
	now := a.cfg.Now()
	a.reading.Lock()
	defer a.reading.Unlock()
	if now.Sub(a.reads[what]) < readNoted {
		return false
	}
	for known, at := range a.reads {
		if now.Sub(at) >= readNoted {
			delete(a.reads, known)
		}
	}
	if a.reads == nil {
		a.reads = map[string]time.Time{}
	}
	a.reads[what] = now
	return true
}
