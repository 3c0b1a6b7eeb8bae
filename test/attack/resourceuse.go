//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"porchlight/test/programs"
)

// askOddly asks for consent to resources that only look like an app that may be opened.
func (g *confined) askOddly(ctx context.Context, t *tally) error {
	r, err := g.client(g.bob)
	if err != nil {
		return err
	}
	notes := g.maya.app.host
	hosts := append([]string{notes, g.zoe.account.Host}, g.notAllowed...)
	ask := func(may bool, resources ...string) error {
		page, err := r.askFor(ctx, resources...)
		if err != nil {
			return err
		}
		t.try(1)
		if page.Status != http.StatusOK {
			to := page.Header.Get("Location")
			if strings.Contains(to, "code=") {
				t.got("%q gives a code unasked: %s", resources, to)
			}
			if may {
				return fmt.Errorf("%q of its own is refused: HTTP %d to %s", resources, page.Status, to)
			}
			return nil
		}
		var checked []string
		for _, found := range pickedOnPage.FindAllStringSubmatch(page.Body, -1) {
			if found[2] != "" {
				checked = append(checked, found[3])
			}
		}
		if !may || len(checked) != 1 || checked[0] != notes {
			t.got("%q asks for consent to %v", resources, checked)
		}
		return nil
	}
	for _, at := range (grid{}).axis("spellings", len(ofResource)).axis("asked for", len(hosts)).pick(g.s.quick, 90) {
		how, host := ofResource[at[0]], hosts[at[1]]
		if err := ask(how.names && host == notes, how.do("https://"+host)); err != nil {
			return err
		}
	}
	for _, other := range append([]string{g.bobs.app.host, g.bobs.account.Host, "", "control.localhost"}, hosts[1:]...) {
		for _, both := range [][]string{{"https://" + notes, "https://" + other}, {"https://" + other, "https://" + notes}, {"https://" + g.root, "https://" + other}} {
			if err := ask(false, both...); err != nil {
				return err
			}
		}
	}
	return nil
}

// tamper answers the consent page for Notes with forms that it does not have.
func (g *confined) tamper(ctx context.Context, t *tally) error {
	r, err := g.client(g.bob)
	if err != nil {
		return err
	}
	notes, diary, zoes, own := g.ids[g.maya.app.host], g.ids[g.diary.host], g.ids[g.zoe.app.host], g.ids[g.bobs.app.host]
	_, diaryID, _ := strings.Cut(diary, "/")
	_, zoesID, _ := strings.Cut(zoes, "/")
	forms := [][]string{
		{diary}, {notes, diary}, {diary, notes}, {zoes}, {notes, zoes}, {zoes, notes}, {own}, {notes, own}, {own, notes},
		{"zoe/*"}, {notes, "zoe/*"}, {"bob/*"}, {notes, "bob/*"}, {"bob/*", notes}, {"*"}, {"*/*"}, {"/*"}, {"maya/" + zoesID}, {"bob/" + diaryID}, {diaryID}, {"/" + diaryID},
		{"maya/"}, {"maya"}, {""}, {notes, ""}, {"MAYA/*"}, {"maya/**"}, {"maya/*/" + diaryID}, {diary + "/*"}, {notes + "," + diary}, {notes + "\x00" + diary}, {" " + diary}, {},
	}
	fmt.Printf("   tampered forms %d × named, unnamed computer\n", len(forms))
	for _, apps := range forms {
		for _, computer := range []string{"", "zoe"} {
			page, err := r.askFor(ctx, "https://"+g.maya.app.host)
			if err != nil {
				return err
			}
			form := url.Values{"decision": {"allow"}, "pick": {"apps"}, "app": apps}
			if computer != "" {
				form.Set("computer", computer)
				form.Del("pick")
			}
			if _, err := r.decide(ctx, page, form); err != nil {
				return err
			}
			t.try(1)
			if r.code == "" {
				continue
			}
			_, got, err := r.token(ctx, r.exchange())
			if err != nil {
				return err
			}
			if len(apps) > 0 {
				t.got("a form with %q gives a code", apps)
			}
			if err := g.hold(ctx, t, fmt.Sprintf("a form with %q", apps), got.Access, g.maya.app.host); err != nil {
				return err
			}
		}
	}
	return nil
}

// wider are resources that a grant for Notes does not have, and combinations of them.
func (g *confined) wider() (all [][]string) {
	notes := "https://" + g.maya.app.host
	for _, host := range g.notNotes {
		all = append(all, []string{"https://" + host}, []string{notes, "https://" + host}, []string{"https://" + host, notes})
	}
	return all
}

// widen refreshes a grant for Notes with other resources.
func (g *confined) widen(ctx context.Context, t *tally) error {
	r, err := g.client(g.bob)
	if err != nil {
		return err
	}
	notes := g.maya.app.host
	got, err := r.grantedFor(ctx, "https://"+notes)
	if err != nil {
		return err
	}
	refresh := func(resources ...string) error {
		form := r.refreshing(got.Refresh)
		form["resource"] = resources
		_, next, err := r.token(ctx, form)
		if err != nil {
			return err
		}
		t.try(1)
		if next.Access == "" {
			return nil
		}
		got = next
		return g.hold(ctx, t, fmt.Sprintf("refreshing with %q", resources), got.Access, notes)
	}
	for _, at := range (grid{}).axis("spellings at refresh", len(ofResource)).axis("asked for", len(g.notNotes)).pick(g.s.quick, 120) {
		if err := refresh(ofResource[at[0]].do("https://" + g.notNotes[at[1]])); err != nil {
			return err
		}
	}
	for _, resources := range g.wider() {
		if err := refresh(resources...); err != nil {
			return err
		}
	}
	if err := refresh(); err != nil {
		return err
	}
	return g.mustOpen(ctx, got.Access, notes)
}

// exchangeWider exchanges codes for Notes with other resources, and narrows one for all.
func (g *confined) exchangeWider(ctx context.Context, t *tally) error {
	r, err := g.client(g.carol)
	if err != nil {
		return err
	}
	notes := "https://" + g.maya.app.host
	fmt.Printf("   exchanged with %d resources, + narrowed\n", len(g.wider()))
	for _, resources := range g.wider() {
		if err := r.allowFor(ctx, notes); err != nil {
			return err
		}
		form := r.exchange()
		form["resource"] = resources
		_, got, err := r.token(ctx, form)
		if err != nil {
			return err
		}
		t.try(1)
		if err := g.hold(ctx, t, fmt.Sprintf("exchanging with %q", resources), got.Access, g.maya.app.host); err != nil {
			return err
		}
	}
	if err := r.allow(ctx); err != nil { // all of it
		return err
	}
	form := r.exchange()
	form["resource"] = []string{notes}
	_, got, err := r.token(ctx, form)
	if err != nil {
		return err
	}
	for _, resources := range append(g.wider(), nil) {
		if err := g.hold(ctx, t, "narrowed to Notes, then", got.Access, g.maya.app.host); err != nil {
			return err
		}
		form := r.refreshing(got.Refresh)
		form["resource"] = resources
		_, next, err := r.token(ctx, form)
		if err != nil {
			return err
		}
		t.try(1)
		if next.Access != "" {
			got = next
		}
	}
	return g.mustOpen(ctx, got.Access, g.maya.app.host)
}

// lookAround shows a token for Notes everywhere else, by each protocol, on connections to
// there and on such to Notes.
func (g *confined) lookAround(ctx context.Context, t *tally) error {
	r, err := g.client(g.bob)
	if err != nil {
		return err
	}
	notes := spot{g.maya, g.maya.app.host}
	got, err := r.grantedFor(ctx, "https://"+notes.host)
	if err != nil {
		return err
	}
	protocols := []string{"HTTP/1.1", "HTTP/2", "WebSocket", "HTTP/1.1 with a whole address", "WebSocket over HTTP/2"}
	for _, protocol := range protocols[:4] {
		if status, _, err := notes.show(ctx, notes, protocol, "/allowed", got.Access); err != nil || status != http.StatusOK {
			return fmt.Errorf("an honest token over %s: HTTP %d, %v", protocol, status, err)
		}
	}
	spots := append([]spot{{g.maya, "portal." + g.root}, {g.maya, "none." + g.root}, {g.maya, "other." + g.root}, {g.bobs, g.bobs.account.Host}, {g.zoe, g.zoe.account.Host}}, g.places[1:]...)
	paths := []string{beyond + "x", "/.porchlight/me", "/.porchlight/apps", "/.well-known/../" + beyond[1:], "//" + notes.host + beyond}
	axes := (grid{}).axis("places", len(spots)).axis("paths", len(paths)).axis("protocols", len(protocols)).axis("connections", 2)
	for _, at := range axes.pick(g.s.quick, 150) {
		p, path, protocol, to := spots[at[0]], paths[at[1]], protocols[at[2]], spots[at[0]]
		if at[3] == 1 {
			to = notes
		}
		status, body, err := p.show(ctx, to, protocol, path, got.Access)
		if err != nil {
			return fmt.Errorf("%s at %s: %w", protocol, p.host, err)
		}
		t.try(1)
		if status == http.StatusSwitchingProtocols || status/100 == 2 || strings.HasPrefix(body, "seen ") {
			t.got("a token for Notes opens %s%s over %s, connected to %s: HTTP %d %.100q", p.host, path, protocol, to.host, status, body)
		}
	}
	for _, path := range []string{"/.porchlight/me", "/.porchlight/apps"} {
		answers, err := g.maya.exchange(ctx, notes.host, "GET "+path+" HTTP/1.1\r\nHost: "+notes.host+"\r\nAuthorization: Bearer "+got.Access+"\r\nConnection: close\r\n\r\n")
		if err != nil || len(answers) == 0 {
			return fmt.Errorf("no answer from %s: %v", path, err)
		}
		t.try(1)
		if strings.Contains(strings.ToLower(answers[0].body), "photos") {
			t.got("%s tells of Photos: %s", path, answers[0].body)
		}
	}
	return nil
}

// show asks for a path of a host, on a connection to a host.
func (p spot) show(ctx context.Context, to spot, protocol, path, access string) (status int, body string, err error) {
	var got answer
	bearer := "Authorization: Bearer " + access + "\r\n"
	switch protocol {
	case "HTTP/2", "WebSocket over HTTP/2":
		fields := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: p.host}, {Name: ":path", Value: path}}
		if protocol != "HTTP/2" {
			fields[0].Value = "CONNECT"
			fields = append(fields, hpack.HeaderField{Name: ":protocol", Value: "websocket"})
		}
		got, err = to.on.stream(ctx, to.host, append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + access}), nil)
		return got.status, got.body, err
	case "WebSocket":
		bearer += upgrade(p.host)
	case "HTTP/1.1 with a whole address":
		path = "https://" + p.host + path
		bearer += "Connection: close\r\n"
	default:
		bearer += "Connection: close\r\n"
	}
	answers, err := to.on.provoke(ctx, to.host, "GET "+path+" HTTP/1.1\r\nHost: "+p.host+"\r\n"+bearer+"\r\n")
	if err != nil || len(answers) == 0 {
		return 0, "", err
	}
	return answers[0].status, answers[0].body, nil
}

// closes waits until a token does not open maya's host any more.
func (g *confined) closes(ctx context.Context, t *tally, what, access, host string) error {
	t.try(1)
	for end := time.Now().Add(programs.Patience); ; time.Sleep(50 * time.Millisecond) {
		opens, err := spot{g.maya, host}.opens(ctx, access, "/allowed")
		if err != nil || !opens {
			return err
		}
		if time.Now().After(end) {
			t.got("%s: the token still opens %s", what, host)
			return nil
		}
	}
}

// refuses notes a token that a form gives.
func (r *remote) refuses(ctx context.Context, t *tally, what string, form url.Values) error {
	_, got, err := r.token(ctx, form)
	t.try(1)
	if got.Access != "" {
		t.got("%s: a token is given", what)
	}
	return err
}
