//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"porchlight/test/visitor"
)

// cimdFloor is how many attacks of the part there are, quick or not.
const cimdFloor, cimdQuickFloor = 10_400, 1_300

// describing is a control plane that is led to fetch what clients say of themselves.
type describing struct {
	*plane
	world  *world
	maya   *tenant
	people int
	person *remote // who was asked last, and what is left of the five in an hour
	budget int
	tally  *tally
}

// attackCIMD goes on in an internet of its own: the programs ask no other addresses, and
// nothing has them do so.
func attackCIMD(ctx context.Context, s *stage, t *tally) error {
	w, err := newWorld(ctx, s.dir)
	if err != nil {
		return err
	}
	defer w.close()
	p, err := s.startPlane(ctx, s.dir+"/plane")
	if err != nil {
		return err
	}
	d := &describing{plane: p, world: w, tally: t}
	if d.maya, err = p.newTenant(ctx, "maya"); err != nil {
		return err
	}
	for _, attack := range []func(context.Context, *stage) error{
		d.spellHosts, d.honest, d.lookUpInside, d.rebind, d.lieInDocuments, d.redirectElsewhere, d.askForNobody, d.askForMany, d.disallow,
	} {
		if err := attack(ctx, s); err != nil {
			return err
		}
		if n := w.trapped.Swap(0); n > 0 {
			t.got("%d connections to what is not in the internet", n)
		}
	}
	return nil
}

// as is somebody who has introduced fewer than five clients within this hour.
func (d *describing) as(ctx context.Context) (*remote, error) {
	if d.budget > 0 {
		d.budget--
		return d.person, nil
	}
	d.people++
	email := fmt.Sprintf("person%d@example.net", d.people)
	if err := d.Run(nil, "account", "add", email); err != nil {
		return nil, err
	}
	d.person, d.budget = &remote{authURL: d.AuthURL, back: "http://127.0.0.1:40123/cb", browser: visitor.New(d.roots)}, 4
	_, err := d.person.browser.SignIn(ctx, d.AuthURL+"/account", email, d.mails)
	return d.person, err
}

// asks asks for consent as a client of that id, and says what came of it.
func (r *remote) asksAs(ctx context.Context, id, back string) (*visitor.Page, error) {
	q := r.query(challengeOf("x"))
	q.Set("client_id", id)
	q.Set("redirect_uri", back)
	return r.ask(ctx, q.Encode())
}

// refused counts an attack that must not come to a consent page, nor lead anywhere.
func (d *describing) refused(what string, page *visitor.Page, err error) error {
	d.tally.try(1)
	if err == nil && (page.Status < 400 || strings.Contains(page.Body, `name="decision"`)) {
		d.tally.got("%s: HTTP %d to %s", what, page.Status, page.Header.Get("Location"))
	}
	return err
}

// spellHosts are addresses in place of a host, which are not allowed and not asked.
func (d *describing) spellHosts(ctx context.Context, _ *stage) error {
	for _, host := range spelled {
		if _, err := d.Output("client", "allow", host); err == nil {
			d.tally.got("%q is allowed as a host", host)
		}
		r, err := d.as(ctx)
		if err != nil {
			return err
		}
		d.budget++ // it costs nothing
		page, err := r.asksAs(ctx, "https://"+host+"/client.json", r.back)
		if err := d.refused("as a host "+host, page, err); err != nil {
			return err
		}
	}
	return nil
}

// honest is what is to go well: consent, tokens, the app, of a client of the host.
func (d *describing) honest(ctx context.Context, _ *stage) error {
	if err := d.Run(nil, "client", "allow", "docs.example", "turn.example", "both.example"); err != nil {
		return err
	}
	r := &remote{authURL: d.AuthURL, id: "https://docs.example/client.json", back: "http://127.0.0.1:40123/cb", browser: visitor.New(d.roots)}
	if _, err := r.browser.SignIn(ctx, d.AuthURL+"/account", d.maya.email, d.mails); err != nil {
		return err
	}
	r.verifier = strings.Repeat("v", 43)
	page, err := r.ask(ctx, r.query(r.verifier).Encode())
	if err != nil {
		return err
	}
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "docs.example") || !strings.Contains(page.Body, "program on your own computer") {
		return fmt.Errorf("an honest client is answered HTTP %d: %s", page.Status, page.Body)
	}
	form := url.Values{"decision": {"allow"}, "app": {valueOf(page.Body, "app")}}
	if _, err := r.decide(ctx, page, form); err != nil || r.code == "" {
		return fmt.Errorf("an honest client gets no code: %w", err)
	}
	if status, got, err := r.token(ctx, r.exchange()); err != nil || status != http.StatusOK {
		return fmt.Errorf("an honest client gets no tokens: HTTP %d %s, %w", status, got.Error, err)
	} else {
		d.world.refresh = got.Refresh
	}
	d.person, d.budget = nil, 0
	return nil
}

func valueOf(body, field string) string {
	_, rest, _ := strings.Cut(body, `name="`+field+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// lookUpInside has names of the internet lead into networks that are not in it.
func (d *describing) lookUpInside(ctx context.Context, _ *stage) error {
	for i, address := range insides {
		host := fmt.Sprintf("inside%d.example", i)
		d.world.leads(host, address)
		if err := d.Run(nil, "client", "allow", host); err != nil {
			return err
		}
		r, err := d.as(ctx)
		if err != nil {
			return err
		}
		page, err := r.asksAs(ctx, "https://"+host+"/client.json", r.back)
		if err := d.refused("a name that leads to "+address, page, err); err != nil {
			return err
		}
		if err := d.Run(nil, "client", "disallow", host); err != nil {
			return err
		}
		if !d.world.lookedUp(host) {
			return fmt.Errorf("%s was not looked up", host)
		}
	}
	return nil
}

// rebind has a name lead to the internet for one who asks, and inside for the next.
func (d *describing) rebind(ctx context.Context, _ *stage) error {
	for i := range 20 {
		r, err := d.as(ctx)
		if err != nil {
			return err
		}
		host := []string{"turn.example", "both.example"}[i%2]
		d.tally.try(1)
		if _, err := r.asksAs(ctx, fmt.Sprintf("https://%s/ok/%d", host, i), r.back); err != nil {
			return err
		}
	}
	return nil
}

// lieInDocuments has the host answer with what is no document, or another's.
func (d *describing) lieInDocuments(ctx context.Context, _ *stage) error {
	for what := range lies {
		r, err := d.as(ctx)
		if err != nil {
			return err
		}
		within, cancel := context.WithTimeout(ctx, time.Minute)
		page, err := r.asksAs(within, "https://docs.example/lie/"+url.PathEscape(what), r.back)
		cancel()
		if err := d.refused("a document: "+what, page, err); err != nil {
			return err
		}
	}
	if n := d.world.elsewhere.Load(); n > 0 {
		d.tally.got("%d requests went where an answer led", n)
	}
	if n := d.world.lied.Load(); int(n) != len(lies) {
		return fmt.Errorf("%d of %d documents were read", n, len(lies))
	}
	return nil
}

// redirectElsewhere asks to be answered where the document does not say, or may not say.
func (d *describing) redirectElsewhere(ctx context.Context, _ *stage) error {
	r, err := d.as(ctx)
	if err != nil {
		return err
	}
	d.budget++ // it is known
	own := map[string]bool{"https://docs.example/cb": true, "http://127.0.0.1:7777/cb": true, "http://localhost/cb": true}
	for uri := range own {
		for _, change := range changesOfURI {
			changed := strings.ReplaceAll(change.do(uri), "notes.example", "docs.example")
			if _, loopback := loopbackOf(changed); own[changed] || loopback {
				continue
			}
			page, err := r.asksAs(ctx, "https://docs.example/client.json", changed)
			if err := d.refused("answered at "+changed, page, err); err != nil {
				return err
			}
		}
	}
	for _, uri := range bannedRedirects {
		page, err := r.asksAs(ctx, "https://docs.example/client.json", uri)
		if err := d.refused("a document's own "+uri, page, err); err != nil {
			return err
		}
	}
	return nil
}

// loopbackOf says whether a redirect URI is one of the document's but for its port.
func loopbackOf(uri string) (port string, ok bool) {
	for _, host := range []string{"http://127.0.0.1", "http://localhost"} {
		if rest, found := strings.CutPrefix(uri, host); found {
			port, path, _ := strings.Cut(strings.TrimPrefix(rest, ":"), "/")
			return port, path == "cb"
		}
	}
	return "", false
}

// askForNobody asks in the name of nobody, for which no host is asked.
func (d *describing) askForNobody(ctx context.Context, s *stage) error {
	before := d.world.asked.Load()
	stranger := &remote{authURL: d.AuthURL, back: "http://127.0.0.1:40123/cb", browser: visitor.New(d.roots)}
	for i := range s.share(200, 50) {
		d.tally.try(1)
		if _, err := stranger.asksAs(ctx, fmt.Sprintf("https://docs.example/ok/stranger%d", i), stranger.back); err != nil {
			return err
		}
	}
	if n := d.world.asked.Load() - before; n > 0 {
		d.tally.got("a host was asked %d times for nobody", n)
	}
	return nil
}

// askForMany asks for very many clients in the name of one person: five are asked for.
func (d *describing) askForMany(ctx context.Context, s *stage) error {
	d.budget = 0
	r, err := d.as(ctx)
	if err != nil {
		return err
	}
	before := d.world.asked.Load()
	for i := range s.share(10_000, 1_000) {
		d.tally.try(1)
		if _, err := r.asksAs(ctx, fmt.Sprintf("https://docs.example/ok/many%d", i), r.back); err != nil {
			return err
		}
	}
	if n := d.world.asked.Load() - before; n != 5 {
		d.tally.got("a host was asked %d times for one person", n)
	}
	d.budget = 0
	return nil
}

// disallow ends the host: nobody of it gets in, or on.
func (d *describing) disallow(ctx context.Context, _ *stage) error {
	if err := d.Run(nil, "client", "disallow", "docs.example"); err != nil {
		return err
	}
	r, err := d.as(ctx)
	if err != nil {
		return err
	}
	page, err := r.asksAs(ctx, "https://docs.example/client.json", r.back)
	if err := d.refused("of a host that was disallowed", page, err); err != nil {
		return err
	}
	r.id = "https://docs.example/client.json"
	d.tally.try(1)
	status, _, err := r.token(ctx, r.refreshing(d.world.refresh))
	if err == nil && status < 400 {
		d.tally.got("a client of a host that was disallowed gets tokens")
	}
	return err
}
