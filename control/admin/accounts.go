package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// AddAccount asks for an account and, with Short, for a computer of that name.
type AddAccount struct {
	Email string `json:"email"`
	Short string `json:"short,omitempty"`
}

// Added is an account that is there now.
type Added struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	New   bool   `json:"new"` // made by this request
	// Computer is set when one was asked for.
	Computer *controlapi.Computer `json:"computer,omitempty"`
	// Credential lets the computer speak for itself. It is there only when the
	// computer was made by this request, and cannot be had again.
	Credential string `json:"credential,omitempty"`
}

func (a *Admin) addAccount(w http.ResponseWriter, r *http.Request) error {
	var ask AddAccount
	if err := readJSON(r, &ask); err != nil {
		return err
	}
	email, err := control.ParseEmail(ask.Email)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if ask.Short != "" {
		// Before the account is made, so that a refusal leaves nothing.
		if err := a.cfg.Naming.ValidShortName(ask.Short); err != nil {
			return err
		}
	}
	// Asking for a computer that is there would replace its credential, so it is
	// looked for first; nobody makes it in between.
	a.adding.Lock()
	defer a.adding.Unlock()
	account, err := a.cfg.Accounts.ByEmail(ctx, email)
	isNew := control.IsRefusal(err, controlapi.CodeNotFound)
	if err != nil && !isNew {
		return err
	}
	if ask.Short == "" {
		if account, err = a.cfg.Accounts.Ensure(ctx, email); err != nil {
			return err
		}
		controlapi.WriteJSON(w, http.StatusOK, Added{ID: account.ID, Email: account.Email, New: isNew})
		return nil
	}
	c, err := a.cfg.Computers.ByName(ctx, ask.Short)
	switch {
	case control.IsRefusal(err, controlapi.CodeNotFound):
	case err != nil:
		return err
	case c.Owner != email:
		return refuse("The name %q is taken. Choose another one.", ask.Short)
	default:
		controlapi.WriteJSON(w, http.StatusOK, Added{ID: account.ID, Email: account.Email, Computer: &c.Computer})
		return nil
	}
	e, err := a.cfg.Computers.Ensure(ctx, email, ask.Short)
	if err != nil {
		return err
	}
	controlapi.WriteJSON(w, http.StatusOK, Added{ID: e.AccountID, Email: e.Email, New: isNew, Computer: &e.Computer, Credential: e.Credential})
	return nil
}

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

// Recovering is an account that mail signs in again from a time on, unless its person stops it.
type Recovering struct {
	Email string    `json:"email"`
	Until time.Time `json:"until"`
}

func (a *Admin) recoverAccount(w http.ResponseWriter, r *http.Request) error {
	email, err := control.ParseEmail(r.PathValue("email"))
	if err != nil {
		return err
	}
	if a.cfg.Recovery == nil {
		return refuse("Start the control plane first: its person has to be told by mail.")
	}
	until, err := a.cfg.Recovery.Begin(r.Context(), email)
	if err != nil {
		return err
	}
	a.cfg.Log.Info("an account is being recovered", "until", until)
	controlapi.WriteJSON(w, http.StatusOK, Recovering{email, until})
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

// RecoverAccount has mail sign an account in again, after a wait in which its person, who
// is told by mail, can stop it.
func (c *Client) RecoverAccount(ctx context.Context, email string) (Recovering, error) {
	return asked[Recovering](ctx, c, "POST", "/accounts/"+url.PathEscape(email)+"/recover", nil)
}

// DisconnectComputer ends a computer's device credential; its short name, people
// and grants are kept for its owner.
func (c *Client) DisconnectComputer(ctx context.Context, name string) error {
	return c.do(ctx, "POST", "/computers/"+url.PathEscape(name)+"/disconnect", nil, nil)
}

// RemoveComputer takes a computer away with its people and grants; its name is
// kept back for its account, see control.Computers.Remove.
func (c *Client) RemoveComputer(ctx context.Context, name string) error {
	return c.do(ctx, "DELETE", "/computers/"+url.PathEscape(name), nil, nil)
}
