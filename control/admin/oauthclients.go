package admin

import (
	"context"
	"net/http"
	"net/url"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// OAuth clients. They are made here and nowhere else (O18), but for those that describe
// themselves at a host allowed here.

// AddOAuthClient asks for a client. RedirectURIs are compared byte for byte, but for
// the port of a public one's loopback addresses.
type AddOAuthClient struct {
	Name         string   `json:"name"` // shown on the consent page
	RedirectURIs []string `json:"redirectUris"`
	Public       bool     `json:"public,omitempty"` // it cannot keep a secret, and has none
}

// OAuthSecret is what a client authenticates with. The secret cannot be had
// again; a public client has none.
type OAuthSecret struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret,omitempty"`
}

func (a *Admin) addOAuthClient(w http.ResponseWriter, r *http.Request) error {
	var ask AddOAuthClient
	if err := readJSON(r, &ask); err != nil {
		return err
	}
	var client control.Client
	var secret string
	var err error
	if ask.Public {
		client, err = a.cfg.Clients.AddPublic(r.Context(), ask.Name, ask.RedirectURIs)
	} else {
		client, secret, err = a.cfg.Clients.Add(r.Context(), ask.Name, ask.RedirectURIs)
	}
	if err != nil {
		return err
	}
	a.cfg.Log.Info("an OAuth client was added", "client", client.ID, "public", client.Public)
	controlapi.WriteJSON(w, http.StatusOK, OAuthSecret{ClientID: client.ID, ClientSecret: secret})
	return nil
}

func (a *Admin) rotateOAuthClient(w http.ResponseWriter, r *http.Request) error {
	id, err := clientID(r)
	if err != nil {
		return err
	}
	secret, err := a.cfg.Clients.Rotate(r.Context(), id)
	if err != nil {
		return err
	}
	a.cfg.Log.Info("the secret of an OAuth client was replaced", "client", id)
	controlapi.WriteJSON(w, http.StatusOK, OAuthSecret{ClientID: id, ClientSecret: secret})
	return nil
}

func (a *Admin) removeOAuthClient(w http.ResponseWriter, r *http.Request) error {
	id, err := clientID(r)
	if err != nil {
		return err
	}
	if err := a.cfg.Clients.Remove(r.Context(), id); err != nil {
		return err
	}
	a.cfg.Log.Info("an OAuth client was removed with its grants", "client", id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *Admin) allowHosts(w http.ResponseWriter, r *http.Request) error {
	var hosts []string
	if err := readJSON(r, &hosts); err != nil {
		return err
	}
	if err := a.cfg.Clients.Allow(r.Context(), hosts...); err != nil {
		return err
	}
	a.cfg.Log.Info("OAuth clients may describe themselves at these hosts", "hosts", hosts)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *Admin) disallowHost(w http.ResponseWriter, r *http.Request) error {
	host := r.PathValue("host")
	if err := a.cfg.Clients.Disallow(r.Context(), host); err != nil {
		return err
	}
	a.cfg.Log.Info("a host was disallowed with the OAuth clients there and their grants", "host", host)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// clientID is the id in the path, which is only ever one that could exist: what
// somebody mistyped is not written to the log.
func clientID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !control.IsClientID(id) {
		return "", refuse("There is no client of that id.")
	}
	return id, nil
}

// OAuthClients are the registered clients, oldest first.
func (c *Client) OAuthClients(ctx context.Context) ([]control.Client, error) {
	return asked[[]control.Client](ctx, c, "GET", "/clients", nil)
}

// AddOAuthClient registers a client and returns its secret, this once.
func (c *Client) AddOAuthClient(ctx context.Context, ask AddOAuthClient) (OAuthSecret, error) {
	return asked[OAuthSecret](ctx, c, "POST", "/clients", ask)
}

// RotateOAuthClient replaces a client's secret. The old one stops working at
// once; what was allowed to the client stays allowed.
func (c *Client) RotateOAuthClient(ctx context.Context, id string) (OAuthSecret, error) {
	return asked[OAuthSecret](ctx, c, "POST", "/clients/"+url.PathEscape(id)+"/secret", nil)
}

// OAuthHosts are the hosts at which clients may describe themselves.
func (c *Client) OAuthHosts(ctx context.Context) ([]control.AllowedHost, error) {
	return asked[[]control.AllowedHost](ctx, c, "GET", "/client-hosts", nil)
}

// AllowOAuthHosts allows hosts besides those of before.
func (c *Client) AllowOAuthHosts(ctx context.Context, hosts []string) error {
	return c.do(ctx, "POST", "/client-hosts", hosts, nil)
}

// DisallowOAuthHost ends a host, the clients there and every grant they hold.
func (c *Client) DisallowOAuthHost(ctx context.Context, host string) error {
	return c.do(ctx, "DELETE", "/client-hosts/"+url.PathEscape(host), nil, nil)
}

// RemoveOAuthClient ends a client and every grant it holds.
func (c *Client) RemoveOAuthClient(ctx context.Context, id string) error {
	return c.do(ctx, "DELETE", "/clients/"+url.PathEscape(id), nil, nil)
}
