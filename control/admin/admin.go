// Package admin is what the operator of a control plane can do with it from the
// machine it runs on: accounts, computers, OAuth clients, the signing key, mails,
// backups.
//
// New takes a running control plane; Serve puts it on a unix socket in its data
// directory, where porchlight-control finds it (Dial). When nothing runs, the
// command opens the store itself and uses the same routes in its own process
// (Direct), so there is one way for every verb: a row of the table in routes, its
// handler, and a method of Client. Who can open the socket may do everything;
// the file system decides who that is.
package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"porchlight/control"
	"porchlight/control/archive"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// Config of an Admin. The service types but Recovery and Store are required.
type Config struct {
	Accounts    *control.Accounts
	Computers   *control.Computers
	Clients     *control.Clients
	Keys        *control.Keys
	Suspensions *control.Suspensions
	// Recovery is nil where no mail that it writes is delivered.
	Recovery   *control.Recovery
	Operators  *control.Operators
	Tokens     *control.AdminTokens
	Overview   *control.Overview
	Challenges *control.Challenges
	// Audit takes what operators did; nil for nothing.
	Audit *audit.Log
	Store kv.Store
	// Naming is what they were made with; it is left beside the socket for
	// commands that find nothing running.
	Naming control.Naming
	// Outbox holds the mails that are read here; nil when they are delivered.
	Outbox *mail.Outbox
	// RootPEM is the certificate of the internal authority; nil without one.
	RootPEM []byte
	// Files are read for a backup, beside the rows; nil means there are none.
	Files func() ([]archive.File, error)
	Now   func() time.Time
	Log   *slog.Logger
}

// Admin is safe for concurrent use.
type Admin struct {
	cfg     Config
	handler http.Handler
	adding  sync.Mutex // one account or computer is made at a time

	reading sync.Mutex           // protects reads
	reads   map[string]time.Time // see first
}

// New starts nothing; call Serve or Direct.
func New(cfg Config) (*Admin, error) {
	if cfg.Accounts == nil || cfg.Computers == nil || cfg.Clients == nil || cfg.Keys == nil || cfg.Suspensions == nil || cfg.Operators == nil || cfg.Tokens == nil || cfg.Overview == nil || cfg.Challenges == nil || cfg.Store == nil {
		return nil, errors.New("admin: the service types and Store are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Admin{cfg: cfg}
	mux := http.NewServeMux()
	for _, r := range slices.Concat(a.routes(), a.overviewRoutes("/overview")) {
		mux.Handle(r.method+" "+r.path, a.dispatch(r))
	}
	a.handler = mux
	return a, nil
}

type route struct {
	method, path string
	serve        func(http.ResponseWriter, *http.Request) error
}

func (a *Admin) routes() []route {
	return []route{
		{"GET", "/accounts", listed(a.cfg.Accounts.List)},
		{"POST", "/accounts", a.addAccount},
		{"DELETE", "/accounts/{email}", a.removeAccount},
		{"POST", "/accounts/{email}/recover", a.recoverAccount},
		{"GET", "/computers", listed(a.cfg.Computers.List)},
		{"POST", "/computers/{name}/disconnect", a.disconnectComputer},
		{"DELETE", "/computers/{name}", a.removeComputer},
		{"GET", "/clients", listed(a.cfg.Clients.List)},
		{"POST", "/clients", a.addOAuthClient},
		{"POST", "/clients/{id}/secret", a.rotateOAuthClient},
		{"DELETE", "/clients/{id}", a.removeOAuthClient},
		{"GET", "/client-hosts", listed(a.cfg.Clients.Hosts)},
		{"POST", "/client-hosts", a.allowHosts},
		{"DELETE", "/client-hosts/{host}", a.disallowHost},
		{"GET", "/audit", a.auditRows},
		{"POST", pathVerify, a.auditVerify},
		{"GET", "/operators", listed(a.cfg.Operators.List)},
		{"POST", "/operators", a.addOperator},
		{"DELETE", "/operators/{email}", a.removeOperator},
		{"GET", "/tokens", listed(a.cfg.Tokens.List)},
		{"POST", "/tokens", a.addToken},
		{"DELETE", "/tokens/{id}", a.removeToken},
		{"GET", "/suspensions", listed(a.cfg.Suspensions.List)},
		{"POST", "/suspensions", a.suspend},
		{"POST", "/suspensions/end", a.resume},
		{"GET", "/keys", listed(a.cfg.Keys.List)},
		{"POST", "/keys", a.rotateKey},
		{"POST", "/keys/now", a.rotateKeyNow},
		{"POST", "/line", a.beginLine},
		{"POST", "/challenge", a.checkChallenge},
		{"GET", "/outbox", a.outbox},
		{"GET", "/outbox/waiting", listed(func(ctx context.Context) ([]mail.Waiting, error) { return mail.Queued(ctx, a.cfg.Store) })},
		{"GET", "/outbox/failed", listed(func(ctx context.Context) ([]mail.Failure, error) { return mail.Failures(ctx, a.cfg.Store) })},
		{"GET", "/ca", a.ca},
		{"GET", "/backup", a.backup},
	}
}

// listed answers with what list finds.
func listed[T any](list func(context.Context) ([]T, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		found, err := list(r.Context())
		if err != nil {
			return err
		}
		controlapi.WriteJSON(w, http.StatusOK, found)
		return nil
	}
}

// bodyLimit bounds a request's body, in bytes.
const bodyLimit = 64 << 10

func (a *Admin) dispatch(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := int64(bodyLimit)
		if rt.path == pathVerify {
			limit = headsLimit
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		err := rt.serve(w, r)
		a.noteAct(r, rt, err)
		if err == nil {
			return
		}
		refusal, ok := errors.AsType[*controlapi.Error](err)
		if !ok {
			// Only the operator can ask: they are told what went wrong.
			a.cfg.Log.Error("an administrative request failed", "route", rt.path, "err", err)
			refusal = &controlapi.Error{Code: controlapi.CodeInternal, Message: err.Error(), HTTPStatus: http.StatusInternalServerError}
		}
		controlapi.WriteJSON(w, cmp.Or(refusal.HTTPStatus, http.StatusBadRequest), refusal)
	})
}

func readJSON(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return refuse("The request is not understood: %v.", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return refuse("The request is not understood: something follows it.")
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &controlapi.Error{Code: controlapi.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

func (a *Admin) checkChallenge(w http.ResponseWriter, r *http.Request) error {
	record, err := a.cfg.Challenges.Check(r.Context())
	if err != nil {
		return err
	}
	controlapi.WriteJSON(w, http.StatusOK, record)
	return nil
}

func (a *Admin) ca(w http.ResponseWriter, _ *http.Request) error {
	if len(a.cfg.RootPEM) == 0 {
		return refuse("This control plane has no certificate authority of its own. With --tls internal it makes one when it starts.")
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	_, _ = w.Write(a.cfg.RootPEM)
	return nil
}

// rowsOnly is the query parameter that leaves the files out of a backup.
const rowsOnly = "rows"

// backup streams an archive. When it fails on the way the archive is left
// without its end, by which the reader knows.
func (a *Admin) backup(w http.ResponseWriter, r *http.Request) error {
	var files []archive.File
	if a.cfg.Files != nil && !r.URL.Query().Has(rowsOnly) {
		var err error
		if files, err = a.cfg.Files(); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/gzip")
	err := func() error {
		out, err := archive.NewWriter(w, a.cfg.Now())
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := out.File(f); err != nil {
				return err
			}
		}
		if err := a.cfg.Store.Dump(r.Context(), out.Row); err != nil {
			return err
		}
		_, err = out.Close()
		return err
	}()
	if err != nil {
		a.cfg.Log.Error("a backup was not finished", "err", err)
		panic(http.ErrAbortHandler) // the head is gone; breaking off is all that is left to say
	}
	return nil
}

func (a *Admin) rotateKey(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Keys.Rotate(r.Context()); err != nil {
		return err
	}
	return listed(a.cfg.Keys.List)(w, r)
}

func (a *Admin) rotateKeyNow(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Keys.RotateNow(r.Context()); err != nil {
		return err
	}
	a.cfg.Log.Warn("the keys before count no longer")
	return listed(a.cfg.Keys.List)(w, r)
}

func (a *Admin) beginLine(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Computers.BeginLine(r.Context()); err != nil {
		return err
	}
	a.cfg.Log.Warn("computers are to believe this store though they were told newer")
	controlapi.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

// BeginLine has computers believe what is in the store though they were told newer.
func (c *Client) BeginLine(ctx context.Context) error {
	return c.do(ctx, "POST", "/line", nil, nil)
}

// Keys are the keys that verify access tokens now, newest first.
func (c *Client) Keys(ctx context.Context) ([]control.Key, error) {
	return asked[[]control.Key](ctx, c, "GET", "/keys", nil)
}

// RotateKey makes new keys and returns what Keys does then; now ends those before at once.
func (c *Client) RotateKey(ctx context.Context, now bool) ([]control.Key, error) {
	path := "/keys"
	if now {
		path = "/keys/now"
	}
	return asked[[]control.Key](ctx, c, "POST", path, nil)
}
