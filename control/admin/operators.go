package admin

import (
	"context"
	"net/http"
	"net/url"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// AddOperator asks for the role operator.
type AddOperator struct {
	Email string `json:"email"`
}

func (a *Admin) addOperator(w http.ResponseWriter, r *http.Request) error {
	var ask AddOperator
	if err := readJSON(r, &ask); err != nil {
		return err
	}
	operator, err := a.cfg.Operators.Add(r.Context(), ask.Email)
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("an account is an operator", "account", operator.ID)
	controlapi.WriteJSON(w, http.StatusOK, operator)
	return nil
}

func (a *Admin) removeOperator(w http.ResponseWriter, r *http.Request) error {
	operator, err := a.cfg.Operators.Remove(r.Context(), r.PathValue("email"))
	if err != nil {
		return err
	}
	a.cfg.Log.Warn("an account is no operator any more", "account", operator.ID)
	controlapi.WriteJSON(w, http.StatusOK, operator)
	return nil
}

// AddOperator gives the account of an address the role operator, and makes the account
// where there is none.
func (c *Client) AddOperator(ctx context.Context, email string) (control.Operator, error) {
	return asked[control.Operator](ctx, c, "POST", "/operators", AddOperator{Email: email})
}

// RemoveOperator takes the role away.
func (c *Client) RemoveOperator(ctx context.Context, email string) (control.Operator, error) {
	return asked[control.Operator](ctx, c, "DELETE", "/operators/"+url.PathEscape(email), nil)
}

// Operators are the accounts with the role operator.
func (c *Client) Operators(ctx context.Context) ([]control.Operator, error) {
	return asked[[]control.Operator](ctx, c, "GET", "/operators", nil)
}
