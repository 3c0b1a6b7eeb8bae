package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// refreshing is an OAuth client's tokens, one for each of its people.
type refreshing struct {
	id, secret string
	tokens     []string
}

const clients = 16

// grants has a few people allow one program.
func (w *world) grants(ctx context.Context) (c refreshing, err error) {
	service, done, err := w.domainOf(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, done()) }()
	const redirect, verifier = "https://pocketnotes.example/cb", "a-verifier-of-more-than-forty-three-characters-for-pkce"
	client, secret, err := service.Clients.Add(ctx, "Pocket Notes", []string{redirect})
	if err != nil {
		return c, err
	}
	c.id, c.secret = client.ID, secret
	sum := sha256.Sum256([]byte(verifier))
	asked := control.Authorization{ClientID: client.ID, RedirectURI: redirect, Challenge: base64.RawURLEncoding.EncodeToString(sum[:])}
	for i := range clients {
		short := fmt.Sprint("granted", i)
		computer, err := service.Computers.Ensure(ctx, short+"@example.net", short)
		if err != nil {
			return c, err
		}
		code, err := service.Grants.Authorize(ctx, asked, control.Account{ID: computer.AccountID}, short)
		if err != nil {
			return c, err
		}
		tokens, err := service.Grants.Exchange(ctx, control.Credentials{ID: client.ID, Secret: secret}, control.Exchange{Code: code, RedirectURI: redirect, Verifier: verifier})
		if err != nil {
			return c, err
		}
		c.tokens = append(c.tokens, tokens.Refresh)
	}
	return c, nil
}

// refreshes measures tokens refreshed as fast as they are answered, over kept
// connections to all nodes.
func (w *world) refreshes(ctx context.Context, r *results) error {
	c, err := w.grants(ctx)
	if err != nil {
		return err
	}
	span := w.window / 4
	done := make([]int, clients)
	s, err := w.besides(ctx, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for i := range clients {
			g.Go(func() (err error) {
				done[i], err = w.refreshFor(ctx, span, &c, i)
				return err
			})
		}
		return g.Wait()
	})
	if err != nil {
		return err
	}
	n := 0
	for _, d := range done {
		n += d
	}
	name := refreshedName(w.nodes)
	r.note(name, eachRate, perSecond(float64(n), span), nil, "higher")
	if one, ok := get(*r.rows, refreshedName(1), eachRate); ok && w.nodes > 1 {
		r.judging(w.nodes == 3).atLeast(name, "a second ÷ that of one node", perSecond(float64(n), span)/one, 1)
	}
	r.eachOf(name, s, n)
	return nil
}

func refreshedName(nodes int) string { return "a token refreshed, " + onNodes(nodes) }

// eachOf notes what each of n things cost.
func (r *results) eachOf(name string, s spent, n int) {
	r.add(name, eachMicro, float64(s.nodes.Microseconds())/float64(max(1, n)))
	r.add(name, eachMicroDB, float64(s.database.Microseconds())/float64(max(1, n)))
	r.add(name, eachAsked, s.statements/float64(max(1, n)))
}

// refreshFor is one client's for a while, at a node of its own.
func (w *world) refreshFor(ctx context.Context, span time.Duration, c *refreshing, i int) (n int, err error) {
	node := w.running[i%len(w.running)].address
	client := w.clientAt(node, visitWait)
	defer client.CloseIdleConnections()
	for end := time.Now().Add(span); time.Now().Before(end); n++ {
		if c.tokens[i], err = refresh(ctx, client, w.authURL(), c, c.tokens[i]); err != nil {
			return n, err
		}
	}
	return n, nil
}

func refresh(ctx context.Context, client *http.Client, auth string, c *refreshing, token string) (next string, err error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {c.id}, "client_secret": {c.secret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, auth+controlapi.PathToken, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var out struct {
		Refresh string `json:"refresh_token"`
		Refused string `json:"error"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Refresh == "" {
		if res.StatusCode == http.StatusBadRequest {
			err = errRefused
		}
		err = cmp.Or(err, errors.New("without a token"))
		return "", fmt.Errorf("refresh: %s, %q, %w", res.Status, out.Refused, err)
	}
	return out.Refresh, nil
}

// clientAt asks one node.
func (w *world) clientAt(node string, wait time.Duration) *http.Client {
	return &http.Client{Timeout: wait, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: w.pool()},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, node)
		},
	}}
}

// signIns measures people who sign in by mail, each with an address of their own. They
// come from one network, which may ask for thirty mails an hour.
func (w *world) signIns(ctx context.Context, r *results) error {
	n := 20
	if w.quick {
		n = 5
	}
	n = min(n, len(w.homes))
	var took []time.Duration
	s, err := w.besides(ctx, func() error {
		mails := rig.MailsIn(filepath.Join(w.dir, "mails"))
		for i := range n {
			email := w.homes[i].Name + "@example.net"
			browser := visitor.New(w.pool())
			defer browser.Close()
			began := time.Now()
			page, err := browser.SignIn(ctx, w.authURL()+"/account", email, mails)
			if err == nil && page.Status != http.StatusOK {
				err = fmt.Errorf("HTTP %d", page.Status)
			}
			if err != nil {
				return fmt.Errorf("signing in: %w", err)
			}
			took = append(took, time.Since(began))
		}
		return nil
	})
	if err != nil {
		return err
	}
	name := "a sign-in by mail, " + onNodes(w.nodes)
	r.add(name, half, ms(quantile(took, .5)))
	r.eachOf(name, s, n)
	return nil
}
