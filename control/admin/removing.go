package admin

import (
	"context"
	"net/http"
	"net/url"

	"porchlight/control"
)

func (a *Admin) removeAccount(w http.ResponseWriter, r *http.Request) error {
	email, err := control.ParseEmail(r.PathValue("email"))
	if err != nil {
		return err
	}
	if err := a.cfg.Accounts.Remove(r.Context(), email); err != nil {
		return err
	}
	a.cfg.Log.Info("an account was removed")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *Admin) disconnectComputer(w http.ResponseWriter, r *http.Request) error {
	return a.endComputer(w, r, a.cfg.Computers.Disconnect, "a computer was disconnected")
}

func (a *Admin) removeComputer(w http.ResponseWriter, r *http.Request) error {
	return a.endComputer(w, r, a.cfg.Computers.Remove, "a computer was removed")
}

// endComputer does to the computer in the path what its owner could do.
func (a *Admin) endComputer(w http.ResponseWriter, r *http.Request, end func(ctx context.Context, accountID, short string) error, done string) error {
	ctx, name := r.Context(), r.PathValue("name")
	computer, err := a.cfg.Computers.ByName(ctx, name)
	if err != nil {
		return err
	}
	owner, err := a.cfg.Accounts.ByEmail(ctx, computer.Owner)
	if err != nil {
		return err
	}
	if err := end(ctx, owner.ID, name); err != nil {
		return err
	}
	a.cfg.Log.Info(done, "computer", name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// RemoveAccount takes an account away with its computers and everything it could
// reach.
func (c *Client) RemoveAccount(ctx context.Context, email string) error {
	return c.do(ctx, "DELETE", "/accounts/"+url.PathEscape(email), nil, nil)
}

// DisconnectComputer ends a computer's device credential; its short name, people
// and grants are kept for its owner.
func (c *Client) DisconnectComputer(ctx context.Context, name string) error {
	return c.do(ctx, "POST", "/computers/"+url.PathEscape(name)+"/disconnect", nil, nil)
}

// RemoveComputer takes a computer away with its people and grants; its name is
// kept back for its account, see control.KeepName.
func (c *Client) RemoveComputer(ctx context.Context, name string) error {
	return c.do(ctx, "DELETE", "/computers/"+url.PathEscape(name), nil, nil)
}
