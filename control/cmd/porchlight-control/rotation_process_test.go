package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/serve"
	"porchlight/test/programs"
)

// Grants of one client, made by the domain on the store itself and then used
// through servers.

const (
	testRedirect = "https://client.example/cb"
	testVerifier = "a-code-verifier-that-is-43-characters-long-x"
)

func testChallenge() string {
	sum := sha256.Sum256([]byte(testVerifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// remote is a client with the secret it was given.
type remote struct{ control.Credentials }

// domain opens the control plane's logic on a store that servers use as well, or
// at other times.
func domain(t *testing.T, store kv.Store) *control.Service {
	t.Helper()
	svc := programs.Got(control.New(control.Config{
		Store: store, Naming: control.Naming{Domain: "porch.test", AuthHost: "control.porch.test"}, Mail: mail.NewOutbox(store, nil),
	}))(t)
	return svc
}

func register(t *testing.T, svc *control.Service) remote {
	t.Helper()
	c, secret, err := svc.Clients.Add(t.Context(), "Pocket Notes", []string{testRedirect})
	programs.Must(t, err)
	return remote{control.Credentials{ID: c.ID, Secret: secret}}
}

// grant makes n grants for the client, each of an account of its own, and
// returns their chains.
func (c remote) grant(t *testing.T, svc *control.Service, n int) []*chain {
	t.Helper()
	var out []*chain
	for range n {
		short := "home-" + strings.ToLower(rand.Text())
		home := programs.Got(svc.Computers.Ensure(t.Context(), short+"@example.com", short))(t)
		a := control.Authorization{ClientID: c.ID, RedirectURI: testRedirect, Challenge: testChallenge()}
		code := programs.Got(svc.Grants.Authorize(t.Context(), a, control.Account{ID: home.AccountID}, short))(t)
		tokens, err := svc.Grants.Exchange(t.Context(), c.Credentials, control.Exchange{Code: code, RedirectURI: testRedirect, Verifier: testVerifier})
		programs.Must(t, err)
		out = append(out, &chain{token: tokens.Refresh})
	}
	return out
}

// inDirectory runs fn on a data directory no server is running on.
func inDirectory(t *testing.T, dir string, fn func(*control.Service)) {
	t.Helper()
	store := programs.Got(kv.Open(t.Context(), filepath.Join(dir, serve.StoreFile), kv.Options{}))(t)
	defer store.Close()
	fn(domain(t, store))
}

// inDatabase runs fn on a database that servers may be using.
func inDatabase(t *testing.T, url string, fn func(*control.Service)) {
	t.Helper()
	var store kv.Store
	var err error
	programs.Eventually(t, "the database is open", func() bool { // it may be recovering from a kill
		store, err = kv.Open(t.Context(), url, kv.Options{})
		return err == nil
	})
	defer store.Close()
	fn(domain(t, store))
}

// tokenAnswer is an answer of the token endpoint.
type tokenAnswer struct {
	status  int
	Refresh string `json:"refresh_token"`
	Access  string `json:"access_token"`
	Code    string `json:"error"`
	Why     string `json:"error_description"`
}

// post sends a form to the token endpoint. An error is one of the connection:
// nobody can tell what became of the request.
func (c remote) post(ctx context.Context, client *http.Client, authURL string, pairs ...string) (tokenAnswer, error) {
	form := url.Values{"client_id": {c.ID}, "client_secret": {c.Secret}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, authURL+controlapi.PathToken, strings.NewReader(form.Encode()))
	if err != nil {
		return tokenAnswer{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(r)
	if err != nil {
		return tokenAnswer{}, err
	}
	defer resp.Body.Close()
	out := tokenAnswer{status: resp.StatusCode}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

func (c remote) refresh(ctx context.Context, client *http.Client, authURL, token string) (tokenAnswer, error) {
	return c.post(ctx, client, authURL, "grant_type", "refresh_token", "refresh_token", token)
}

// chain is one grant's refresh tokens as its client holds them.
type chain struct {
	token string // acknowledged and not presented since, unless open
	used  string // the one before, which never works again
	open  bool   // token was presented and no answer came
	lost  bool   // token was used up without its successor having arrived
}

// step presents the token once and notes what the answer means.
func (k *chain) step(ctx context.Context, c remote, client *http.Client, authURL string) error {
	if k.lost {
		return nil
	}
	a, err := c.refresh(ctx, client, authURL, k.token)
	switch {
	case err != nil:
		k.open = true
		return nil
	case a.status == http.StatusOK:
		k.used, k.token, k.open = k.token, a.Refresh, false
		return nil
	case a.status == http.StatusServiceUnavailable && a.Code == "temporarily_unavailable" && a.Why != "":
		// Nothing was changed, or it says that this is not known.
		k.open = k.open || strings.Contains(a.Why, "Look whether")
		return nil
	case k.open && a.Code == "invalid_grant":
		k.lost = true // the answer was lost on the way, the rotation was kept
		return nil
	}
	return fmt.Errorf("an acknowledged token is answered by %d %s %s", a.status, a.Code, a.Why)
}

// replay presents the token used before the last one, which must not work.
func (k *chain) replay(ctx context.Context, c remote, client *http.Client, authURL string) error {
	if k.used == "" {
		return nil
	}
	a, err := c.refresh(ctx, client, authURL, k.used)
	if err != nil {
		return err
	}
	if a.status != http.StatusBadRequest || a.Code != "invalid_grant" {
		return fmt.Errorf("a used token is answered by %d %s", a.status, a.Code)
	}
	return nil
}

// hammer refreshes all chains until ctx ends or one of them tells a lie. acks
// counts the rotations acknowledged.
func hammer(ctx context.Context, c remote, chains []*chain, at func(i int) (*http.Client, string), acks *atomic.Int64) error {
	errs := make(chan error, len(chains))
	for i, k := range chains {
		go func() {
			for ctx.Err() == nil {
				before := k.token
				client, authURL := at(i)
				// Cut off by the test's own end, the answer would be missing.
				if err := k.step(context.WithoutCancel(ctx), c, client, authURL); err != nil {
					errs <- fmt.Errorf("chain %d: %w", i, err)
					return
				}
				if k.token != before {
					acks.Add(1)
				}
			}
			errs <- nil
		}()
	}
	var all error
	for range chains {
		all = errors.Join(all, <-errs)
	}
	return all
}

// goOn has every chain go on where it is, after which none is open, and
// returns how many lost the answer to a rotation that was kept.
func goOn(t *testing.T, c remote, chains []*chain, client *http.Client, authURL string) (lost int) {
	t.Helper()
	for i, k := range chains {
		if err := errors.Join(k.replay(t.Context(), c, client, authURL), k.step(t.Context(), c, client, authURL)); err != nil {
			t.Fatalf("chain %d: %v", i, err)
		}
		switch {
		case k.lost:
			lost++
		case k.open:
			t.Fatalf("chain %d: a server that answers did not answer", i)
		}
	}
	return lost
}

// rounds of killing: a few in every run of the tests, many in `make soak`.
func rounds(few int) int {
	if os.Getenv("PORCHLIGHT_SOAK") != "" {
		return 200
	}
	return few
}
