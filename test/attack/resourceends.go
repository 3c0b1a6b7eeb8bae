//go:build linux

package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"porchlight/test/programs"
)

// comeTwice presents a code again after what it gave was narrowed.
func (g *confined) comeTwice(ctx context.Context, t *tally) error {
	notes, photos := "https://"+g.maya.app.host, "https://"+g.photos.host
	for _, asked := range [][]string{nil, {notes, photos}} {
		r, err := g.client(g.carol)
		if err != nil {
			return err
		}
		if asked == nil {
			err = r.allow(ctx)
		} else {
			err = r.allowFor(ctx, asked...)
		}
		if err != nil {
			return err
		}
		used := r.exchange()
		_, got, err := r.token(ctx, used)
		if err != nil {
			return err
		}
		form := r.refreshing(got.Refresh)
		form.Set("resource", notes)
		if _, got, err = r.token(ctx, form); err != nil {
			return err
		}
		if err := g.mustOpen(ctx, got.Access, g.maya.app.host); err != nil {
			return err
		}
		// The agent hears of it with its next snapshot.
		if err := g.closes(ctx, t, "narrowed", got.Access, g.photos.host); err != nil {
			return err
		}
		if err := g.hold(ctx, t, "narrowed", got.Access, g.maya.app.host); err != nil {
			return err
		}
		used.Set("resource", photos)
		for _, what := range []string{"a code used twice", "a code used three times"} {
			if err := r.refuses(ctx, t, what, used); err != nil {
				return err
			}
		}
		if err := r.refuses(ctx, t, "refreshing after its code was used twice", r.refreshing(got.Refresh)); err != nil {
			return err
		}
		if err := g.closes(ctx, t, "a code used twice", got.Access, g.maya.app.host); err != nil {
			return err
		}
	}
	return nil
}

// approveAnew revokes Photos and approves it anew, under its old name: another app.
func (g *confined) approveAnew(ctx context.Context, t *tally) error {
	r, err := g.client(g.maya.browser)
	if err != nil {
		return err
	}
	notes, photos := "https://"+g.maya.app.host, "https://"+g.photos.host
	alone, err := r.grantedFor(ctx, photos)
	if err != nil {
		return err
	}
	both, err := r.grantedFor(ctx, photos, notes)
	if err != nil {
		return err
	}
	for _, got := range []tokens{alone, both} {
		if err := g.mustOpen(ctx, got.Access, g.photos.host); err != nil {
			return err
		}
	}
	if err := r.allowFor(ctx, photos); err != nil {
		return err
	}
	pending := r.exchange()
	asked, err := r.askFor(ctx, photos)
	if err != nil {
		return err
	}
	old := g.ids[g.photos.host]
	if _, err := g.maya.owner.Revoke(ctx, "photos"); err != nil {
		return err
	}
	if _, err := g.maya.publish(ctx, "photos", "Photos", g.photos.tap.port()); err != nil {
		return err
	}
	for end := time.Now().Add(programs.Patience); g.ids[g.photos.host] == old; time.Sleep(50 * time.Millisecond) {
		if err := g.learn(ctx, g.maya.browser, []string{g.photos.host, g.maya.app.host}); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("photos stays %s", old)
		}
	}
	anew, err := r.grantedFor(ctx, photos)
	if err != nil {
		return err
	}
	if err := g.mustOpen(ctx, anew.Access, g.photos.host); err != nil {
		return err
	}
	for what, form := range map[string]url.Values{"a code of before": pending, "a refresh token of before": r.refreshing(alone.Refresh)} {
		if err := r.refuses(ctx, t, what+" the app was approved anew", form); err != nil {
			return err
		}
	}
	wider := r.refreshing(both.Refresh)
	wider["resource"] = []string{photos}
	if err := r.refuses(ctx, t, "refreshing with the app approved anew", wider); err != nil {
		return err
	}
	_, next, err := r.token(ctx, r.refreshing(both.Refresh))
	if err != nil {
		return err
	}
	for what, access := range map[string]string{"for Photos": alone.Access, "for both": both.Access, "for both, refreshed": next.Access} {
		t.try(1)
		if err := g.hold(ctx, t, "a token "+what+" of before the app was approved anew", access, g.maya.app.host); err != nil {
			return err
		}
	}
	_, err = r.decide(ctx, asked, url.Values{"decision": {"allow"}, "pick": {"apps"}, "app": {old}})
	t.try(1)
	if r.code != "" {
		t.got("a form with the app's former id gives a code")
	}
	return err
}

// loseClient removes a client that holds a grant for Notes.
func (g *confined) loseClient(ctx context.Context, t *tally) error {
	r, err := g.client(g.bob)
	if err != nil {
		return err
	}
	notes := "https://" + g.maya.app.host
	got, err := r.grantedFor(ctx, notes)
	if err != nil {
		return err
	}
	if err := g.mustOpen(ctx, got.Access, g.maya.app.host); err != nil {
		return err
	}
	if err := r.allowFor(ctx, notes); err != nil {
		return err
	}
	if err := g.Run(nil, "client", "remove", r.id); err != nil {
		return err
	}
	for what, form := range map[string]url.Values{"refreshing": r.refreshing(got.Refresh), "a code": r.exchange()} {
		if err := r.refuses(ctx, t, what+" of a client that was removed", form); err != nil {
			return err
		}
	}
	return g.closes(ctx, t, "a client that was removed", got.Access, g.maya.app.host)
}
