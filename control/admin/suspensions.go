package admin

import (
	"context"
	"net/http"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// Suspend asks for a suspension, or for its end.
type Suspend struct {
	Kind   control.SuspensionKind `json:"kind"`
	ID     string                 `json:"id"` // or the mail address of an account, the short name of a computer
	Reason string                 `json:"reason"`
}

func (a *Admin) suspend(w http.ResponseWriter, r *http.Request) error {
	var ask Suspend
	if err := readJSON(r, &ask); err != nil {
		return err
	}
	done, err := a.cfg.Suspensions.Suspend(r.Context(), ask.Kind, ask.ID, ask.Reason, actor(r.Context()))
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("suspended", "kind", done.Kind)
	controlapi.WriteJSON(w, http.StatusOK, done)
	return nil
}

func (a *Admin) resume(w http.ResponseWriter, r *http.Request) error {
	var ask Suspend
	if err := readJSON(r, &ask); err != nil {
		return err
	}
	done, err := a.cfg.Suspensions.Resume(r.Context(), ask.Kind, ask.ID, ask.Reason, actor(r.Context()))
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("resumed", "kind", done.Kind)
	controlapi.WriteJSON(w, http.StatusOK, done)
	return nil
}

// Suspend ends access until Resume, see control.Suspensions, and says what it ended.
func (c *Client) Suspend(ctx context.Context, what Suspend) (control.Suspension, error) {
	return asked[control.Suspension](ctx, c, "POST", "/suspensions", what)
}

// Resume takes a Suspend back.
func (c *Client) Resume(ctx context.Context, what Suspend) (control.Suspension, error) {
	return asked[control.Suspension](ctx, c, "POST", "/suspensions/end", what)
}

// Suspensions lists what is suspended.
func (c *Client) Suspensions(ctx context.Context) ([]control.Suspension, error) {
	return asked[[]control.Suspension](ctx, c, "GET", "/suspensions", nil)
}
