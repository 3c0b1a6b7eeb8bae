package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const appRedirect = "https://pocketnotes.example/cb"

var proof = strings.Repeat("v", 43)

// registered is a client with its credentials.
type registered struct {
	*bench
	Credentials
	redirect string
}

func (b *bench) registered() registered { return b.registeredAt(appRedirect) }

func (b *bench) registeredAt(redirect string) registered {
	b.t.Helper()
	c, secret, err := b.Clients.Add(b.t.Context(), "Pocket Notes", []string{redirect})
	programs.Must(b.t, err)
	return registered{b, Credentials{ID: c.ID, Secret: secret}, redirect}
}

func (c registered) code(account Account, short string) (string, error) {
	return c.Grants.Authorize(c.t.Context(), Authorization{ClientID: c.ID, RedirectURI: c.redirect, Challenge: challengeOf(proof)}, account, short)
}

func (c registered) exchange(code string) (Tokens, error) {
	return c.Grants.Exchange(c.t.Context(), c.Credentials, Exchange{Code: code, RedirectURI: c.redirect, Verifier: proof})
}

func (c registered) use(token string) (Tokens, error) {
	return c.Grants.Refresh(c.t.Context(), c.Credentials, token)
}

// granted is a grant of an account for a computer.
func (c registered) granted(account Account, short string) Tokens {
	c.t.Helper()
	return ok[Tokens](c.t)(c.exchange(ok[string](c.t)(c.code(account, short))))
}

// member is an active member of maya's computer.
func (b *bench) member(computerID, email string) Account {
	b.t.Helper()
	programs.Must(b.t, b.Agents.PutApps(b.t.Context(), computerID, controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}}))
	return b.joined(computerID, email, "app1")
}

func grantID(token string) string {
	id, _ := grantOfToken(token)
	return id
}

func TestSpec(t *testing.T) {
	t.Parallel()
	t.Run("O10_code_expires", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		c, owner := b.registered(), b.owner()
		account := Account{ID: owner.AccountID}
		early, late := ok[string](t)(c.code(account, "maya")), ok[string](t)(c.code(account, "maya"))
		b.clock.Add(59 * time.Second)
		ok[Tokens](t)(c.exchange(early))
		b.clock.Add(time.Second)
		_, err := c.exchange(late)
		wantRefusal(t, err, controlapi.CodeInvalidGrant)
	})
	t.Run("O16_secrets_are_stored_hashed", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		c, owner := b.registered(), b.owner()
		code := ok[string](t)(c.code(Account{ID: owner.AccountID}, "maya"))
		first := ok[Tokens](t)(c.exchange(ok[string](t)(c.code(Account{ID: owner.AccountID}, "maya"))))
		second := ok[Tokens](t)(c.use(first.Refresh))
		rows := b.stored()
		for key, value := range rows {
			row := key + " " + value
			for _, secret := range []string{c.Secret, code, first.Refresh, second.Refresh, second.Access} {
				// The id at its beginning is no secret.
				if _, secret, found := strings.Cut(secret, "."); found && strings.Contains(row, secret) {
					t.Errorf("%s holds a token", key)
				}
				if strings.Contains(row, secret) {
					t.Errorf("%s holds a secret", key)
				}
			}
		}
		if len(rows) < 8 {
			t.Errorf("%d rows", len(rows))
		}
	})
	t.Run("O18_clients_by_the_operator_secret_once", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		c := b.registered()
		listed := ok[[]Client](t)(b.Clients.List(t.Context()))
		if len(listed) != 1 || listed[0].ID != c.ID || listed[0].Name != "Pocket Notes" || !slices.Equal(listed[0].RedirectURIs, []string{appRedirect}) ||
			strings.Contains(fmt.Sprint(listed), c.Secret) {
			t.Errorf("listed %+v", listed)
		}
		secret := ok[string](t)(b.Clients.Rotate(t.Context(), c.ID))
		wantRefusal(t, b.Clients.Authenticate(t.Context(), c.Credentials), controlapi.CodeInvalidClient)
		if err := b.Clients.Authenticate(t.Context(), Credentials{ID: c.ID, Secret: secret}); err != nil {
			t.Error(err)
		}
		if err := b.Clients.Remove(t.Context(), c.ID); err != nil {
			t.Error(err)
		}
		wantRefusal(t, b.Clients.Remove(t.Context(), c.ID), controlapi.CodeNotFound)
		_, err := b.Clients.Rotate(t.Context(), c.ID)
		wantRefusal(t, err, controlapi.CodeNotFound)
		wantRefusal(t, b.Clients.Authenticate(t.Context(), Credentials{ID: c.ID, Secret: secret}), controlapi.CodeInvalidClient)
	})
}

func TestRedirectURIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for uri, fine := range map[string]bool{
		"https://pocketnotes.example/cb":      true,
		"https://pocketnotes.example":         true,
		"https://pocketnotes.example:8443/?a": true,
		"http://127.0.0.1:3000/cb":            true,
		"http://localhost/cb":                 true,
		"http://app.localhost:1/cb":           true,
		"com.example.notes:/cb":               true,
		"com.example.notes://cb":              true,
		"https://192.0.2.7:65535/cb":          true,
		"https://pocketnotes.example/a.b/..c": true,

		"":                                                         false,
		"/cb":                                                      false,
		"//pocketnotes.example/cb":                                 false,
		"http://pocketnotes.example/cb":                            false,
		"http://127.0.0.1.evil.example/cb":                         false,
		"HTTPS://pocketnotes.example/cb":                           false,
		"https://Pocketnotes.example/cb":                           false,
		"https://user@pocketnotes.example/":                        false,
		"https://pocketnotes.example/#here":                        false,
		"https://pocketnotes.example/cb#":                          false,
		"https://pocketnotes.example./cb":                          false,
		"https://pocketnotes.example/cb?code=1":                    false,
		"https://pocketnotes.example/cb?a=b&state":                 false,
		"https://pocketnotes.example/cb?%65rror=x":                 false,
		"https://pocket notes.example/":                            false,
		"https://pocketnotes.example/;script-src 'unsafe'":         false,
		"https://pocketnotes.example;script-src/":                  false,
		"https://pocketnotes.example,https://evil.example/":        false,
		"https://pocketnotes.example:/":                            false,
		"https://pocketnotes.example:x/":                           false,
		"https://pocketnotes.example\\@evil.example/":              false,
		"https://pocketnotes.example/\r\nSet-Cookie: a=b":          false,
		"https:pocketnotes.example/cb":                             false,
		"https:///cb":                                              false,
		"https://[::1]/cb":                                         false,
		"https://münchen.example/":                                 false,
		"https://pocketnotes.example/../cb":                        false,
		"https://pocketnotes.example/a/./cb":                       false,
		"https://pocketnotes.example/a/..":                         false,
		"https://pocketnotes.example/a/%2E%2e/cb":                  false,
		"https://pocketnotes.example/a/%252e%252e/cb":              true,
		"com.example.notes:/a/../cb":                               false,
		"com.example.notes:a/../cb":                                false,
		"https://pocketnotes.example:99999/cb":                     false,
		"https://pocketnotes.example:65536/cb":                     false,
		"https://pocketnotes.example:0/cb":                         false,
		"https://pocketnotes.example:0443/cb":                      false,
		"https://*.pocketnotes.example/cb":                         false,
		"https://pocketnotes.example/*":                            false,
		"https://pocketnotes.example/cb?a=%zz":                     false,
		"https://pocketnotes.example/%zz":                          false,
		"https://127.1/cb":                                         false,
		"https://2130706433/cb":                                    false,
		"https://0x7f.0.0.1/cb":                                    false,
		"https://pocketnotes.example\t/cb":                         false,
		" https://pocketnotes.example/cb":                          false,
		"javascript:alert(1)":                                      false,
		"data:text/html,x":                                         false,
		"myapp:/cb":                                                false,
		"https://pocketnotes.example/" + strings.Repeat("x", 1000): false,
	} {
		_, _, err := b.Clients.Add(t.Context(), "Pocket Notes", []string{uri})
		if (err == nil) != fine || err != nil && !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for name, uris := range map[string][]string{
		"": {appRedirect}, " ": {appRedirect}, "a\nb": {appRedirect}, "a\u202eb": {appRedirect}, "\xff": {appRedirect},
		strings.Repeat("n", 81): {appRedirect}, "none": nil, "twice": {appRedirect, appRedirect}, "many": slices.Repeat([]string{appRedirect}, 11),
	} {
		_, _, err := b.Clients.Add(t.Context(), name, uris)
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
}

// A redirect URI that was stored under earlier rules goes on working as it is
// stored, and as nothing else.
func TestStoredRedirectURIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.registered()
	stored := []string{"https://host.example/../cb", "https://host.example:99999/cb"}
	edit(b, keyClient(c.ID), func(row *client) { row.RedirectURIs = stored })
	for _, uri := range stored {
		if _, err := b.Clients.For(t.Context(), c.ID, uri); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	_, err := b.Clients.For(t.Context(), c.ID, "https://host.example/cb")
	wantRefusal(t, err, controlapi.CodeInvalidRedirectURI)
}

// What is accepted can be written into a Location and a policy.
func FuzzRedirectURI(f *testing.F) {
	for _, seed := range []string{appRedirect, "com.example.notes:/cb?x", "http://localhost:1/?&", "https://a/%zz", "https://a:0/"} {
		f.Add(seed, "a state", false)
	}
	for _, seed := range []string{"cursor://cb?x", "http://[::1]:1/cb", "http://127.0.0.1?", "http://[::1%25lo]/", "localhost:1/cb", "view-source:/x"} {
		f.Add(seed, "a state", true)
	}
	f.Fuzz(func(t *testing.T, uri, state string, public bool) {
		if validRedirectURI(uri, public) != nil {
			return
		}
		if _, loopback := withoutPort(uri); loopback {
			u, err := url.Parse(uri)
			if err != nil || u.Scheme != "http" || u.User != nil || !slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname()) {
				t.Errorf("%q is taken for a loopback address (%v)", uri, err)
			}
		}
		if source := RedirectSource(uri); source == "" || strings.ContainsAny(source, " ;,'\"") || !strings.HasPrefix(uri, source) {
			t.Errorf("%q makes the source %q", uri, source)
		}
		to := Redirection(uri, url.Values{"state": {state}, "code": {"c"}})
		before, err1 := url.Parse(uri)
		after, err2 := url.Parse(to)
		if err1 != nil || err2 != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.Path != before.Path || strings.ContainsAny(to, " \r\n\\") {
			t.Fatalf("%q leads to %q (%v, %v)", uri, to, err1, err2)
		}
		if q, err := url.ParseQuery(after.RawQuery); err == nil {
			if states := q["state"]; len(states) == 0 || states[len(states)-1] != state {
				t.Errorf("%q leads to %q, state %q", uri, to, states)
			}
		}
	})
}

func TestConsentsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	for range 30 {
		ok[string](t)(c.code(Account{ID: owner.AccountID}, "maya"))
	}
	_, err := c.code(Account{ID: owner.AccountID}, "maya")
	wantRefusal(t, err, controlapi.CodeTooMany)
}

// Any sequence of events leaves a grant where the table of docs/interface.md,
// States of a grant and its tokens, says.
func TestGrantModel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	account := Account{ID: owner.AccountID}
	rapid.Check(t, func(rt *rapid.T) {
		b.clock.Add(10 * time.Minute) // a fresh budget
		used := []string{}
		valid, revoked := c.granted(account, "maya").Refresh, false
		refuses := func(err error, code string) {
			if !IsRefusal(err, code) {
				rt.Fatalf("got %v, want %s", err, code)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"refresh": func(*rapid.T) {
				next, err := c.use(valid)
				if revoked {
					refuses(err, controlapi.CodeAccessDenied)
					return
				}
				programs.Must(rt, err)
				used, valid = append(used, valid), next.Refresh
			},
			"replay": func(rt *rapid.T) {
				if len(used) == 0 {
					rt.Skip()
				}
				_, err := c.use(rapid.SampledFrom(used).Draw(rt, "token"))
				if revoked {
					refuses(err, controlapi.CodeAccessDenied)
				} else {
					refuses(err, controlapi.CodeInvalidGrant)
				}
			},
			"revoke": func(*rapid.T) {
				programs.Must(rt, b.Grants.RevokeForAccount(context.Background(), account.ID, grantID(valid)))
				revoked = true
			},
			"forge": func(*rapid.T) {
				_, err := c.use(refreshToken(anID(), aSecret()))
				refuses(err, controlapi.CodeInvalidGrant)
			},
			"wait": func(*rapid.T) { b.clock.Add(time.Hour) },
		})
	})
}

func TestRotatingTheSigningKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, owner := b.registered(), b.owner()
	tokens := c.granted(Account{ID: owner.AccountID}, "maya")
	first := b.Keys.Signing()
	signedBy := func(access, public string) bool {
		key := ok[any](t)(func() (any, error) { return jwt.ParseEdPublicKeyFromPEM([]byte(public)) }())
		_, err := jwt.Parse(access, func(*jwt.Token) (any, error) { return key, nil }, jwt.WithTimeFunc(b.clock.Now))
		if err != nil && !errors.Is(err, jwt.ErrTokenSignatureInvalid) {
			t.Fatal(err)
		}
		return err == nil
	}
	next := func() string {
		tokens = ok[Tokens](t)(c.use(tokens.Refresh))
		return tokens.Access
	}

	other := b.node() // another node on the same store
	programs.Must(t, b.Keys.Rotate(t.Context()))
	wantRefusal(t, b.Keys.Rotate(t.Context()), controlapi.CodeInvalid)
	keys := b.Keys.Public()
	if len(keys) != 2 || keys[1] != first || b.Keys.Signing() != first || !signedBy(next(), first) {
		t.Error("the new key is in use before everybody knows it")
	}
	if len(other.Keys.Public()) != 1 {
		t.Error("the other node knew without reading")
	}
	if other.Feed.Look(t.Context()); !slices.Equal(other.Keys.Public(), keys) {
		t.Errorf("the other node has %d keys", len(other.Keys.Public()))
	}
	b.clock.Add(keyLead)
	if b.Keys.Signing() != keys[0] || other.Keys.Signing() != keys[0] || !signedBy(next(), keys[0]) {
		t.Error("the new key is not in use")
	}
	b.clock.Add(controlapi.GrantMemory - time.Second)
	if len(b.Keys.Public()) != 2 {
		t.Error("the old key is gone while a token could be used")
	}
	b.clock.Add(time.Second)
	if got := b.Keys.Public(); len(got) != 1 || got[0] != keys[0] {
		t.Errorf("%d keys verify", len(got))
	}
	programs.Must(t, b.Keys.Rotate(t.Context()))
	restarted := b.node()
	if got := restarted.Keys.Public(); len(got) != 2 || got[1] != keys[0] || !slices.Equal(got, b.Keys.Public()) {
		t.Errorf("after a restart %d keys verify", len(got))
	}
}
