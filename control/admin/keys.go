package admin

import (
	"context"
	"net/http"

	"porchlight/control"
)

func (a *Admin) keys(w http.ResponseWriter, r *http.Request) error {
	list, err := a.cfg.Keys.List(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (a *Admin) rotateKey(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Keys.Rotate(r.Context()); err != nil {
		return err
	}
	return a.keys(w, r)
}

// Keys are the keys that verify access tokens now, newest first.
func (c *Client) Keys(ctx context.Context) (out []control.Key, err error) {
	err = c.do(ctx, "GET", "/keys", nil, &out)
	return out, err
}

// RotateKey makes a new signing key and returns what Keys does then.
func (c *Client) RotateKey(ctx context.Context) (out []control.Key, err error) {
	err = c.do(ctx, "POST", "/keys", nil, &out)
	return out, err
}
