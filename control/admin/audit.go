package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"porchlight/control"
	"porchlight/control/audit"
	"porchlight/control/controlapi"
)

const (
	pathVerify = "/audit/verify"
	// headsLimit bounds the heads of one Verify, in bytes: those of years.
	headsLimit = 256 << 20
)

// noteAct keeps that the operator asked for something that changes or gives away. The address
// of an account is left out: what becomes of the account is noted by its id.
func (a *Admin) noteAct(r *http.Request, rt route, err error) {
	reads := rt.method == http.MethodGet && rt.path != "/backup" && rt.path != "/outbox"
	if reads || rt.path == pathVerify {
		return
	}
	what := rt.method + " " + rt.path
	if err != nil {
		what += ", refused"
	}
	a.cfg.Audit.Add(audit.Event{Kind: "operator", By: control.ByCommandLine, On: r.PathValue("name") + r.PathValue("id") + r.PathValue("host"), What: what})
}

// FlushAudit writes what is to be kept of the acts so far, before the store is closed.
func (a *Admin) FlushAudit(ctx context.Context) error { return a.cfg.Audit.Flush(ctx) }

// auditRows streams the rows as JSON lines. When it fails on the way the answer is broken off.
func (a *Admin) auditRows(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Audit.Flush(r.Context()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	lines := json.NewEncoder(w)
	if err := audit.List(r.Context(), a.cfg.Store, func(row audit.Row) error { return lines.Encode(row) }); err != nil {
		a.cfg.Log.Error("the audit log was not read to its end", "err", err)
		panic(http.ErrAbortHandler) // the head is gone; breaking off is all that is left to say
	}
	return nil
}

func (a *Admin) auditVerify(w http.ResponseWriter, r *http.Request) error {
	var heads []audit.Head
	if err := readJSON(r, &heads); err != nil {
		return err
	}
	verify := a.cfg.Audit.Verify
	if a.cfg.Audit == nil {
		verify = func(ctx context.Context, heads []audit.Head) (audit.Report, error) {
			return audit.Verify(ctx, a.cfg.Store, heads)
		}
	}
	report, err := verify(r.Context(), heads)
	if errors.Is(err, audit.ErrVerifying) {
		return refuse("The audit log is being verified already. Try again in a moment.")
	}
	if err != nil {
		return err
	}
	controlapi.WriteJSON(w, http.StatusOK, report)
	return nil
}

// Audit calls fn for each row of the audit log, chain by chain.
func (c *Client) Audit(ctx context.Context, fn func(audit.Row) error) error {
	answer, err := c.open(ctx, "GET", "/audit", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	for lines := json.NewDecoder(answer); ; {
		var row audit.Row
		switch err := lines.Decode(&row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := fn(row); err != nil {
			return err
		}
	}
}

// VerifyAudit looks whether the audit log is whole, with heads that were told outside of the store.
func (c *Client) VerifyAudit(ctx context.Context, heads []audit.Head) (audit.Report, error) {
	return asked[audit.Report](ctx, c, "POST", pathVerify, append([]audit.Head{}, heads...))
}
