//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"porchlight/agent/agentapi"
	"porchlight/test/visitor"
)

// atOnceEach is how many use the same thing at the same moment.
const atOnceEach = 8

// race has many do the same at the same moment and counts who won.
func race(do func(i int) (won bool, err error)) (won int, err error) {
	var wins atomic.Int64
	var mu sync.Mutex // protects failed
	var failed error
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range atOnceEach {
		wg.Go(func() {
			<-start
			ok, err := do(i)
			if ok {
				wins.Add(1)
			}
			if err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	return int(wins.Load()), failed
}

// attackRaces uses what works once many times at the same moment.
func attackRaces(ctx context.Context, s *stage, t *tally) error {
	c, _, err := s.startWithNotes(ctx)
	if err != nil {
		return err
	}
	r, err := c.newRemote(ctx, s, "Pocket Notes", callback)
	if err != nil {
		return err
	}
	defer r.browser.Close()
	kinds := []struct {
		what         string
		rounds, some int
		one          func() (won int, err error)
	}{
		{"codes", 10, 2, func() (int, error) { return r.raceCode(ctx) }},
		{"refreshes", 10, 3, r.raceRefresh(ctx)},
		{"refreshes during a revocation", 5, 2, func() (int, error) { return r.raceRevocation(ctx, c) }},
		{"invitations", 6, 2, c.raceInvitation(ctx)},
		{"links of the owner", 6, 2, func() (int, error) { return c.raceOpen(ctx) }},
	}
	for _, k := range kinds {
		rounds := k.rounds
		if s.quick {
			rounds = k.some
		}
		fmt.Printf("   %s: rounds %d × at once %d = %d\n", k.what, rounds, atOnceEach, rounds*atOnceEach)
		for range rounds {
			won, err := k.one()
			if err != nil {
				return fmt.Errorf("%s: %w", k.what, err)
			}
			t.try(atOnceEach)
			if won != 1 {
				t.got("%s: %d winners", k.what, won)
			}
		}
	}
	return nil
}

func (r *remote) raceCode(ctx context.Context) (int, error) {
	if err := r.allow(ctx); err != nil {
		return 0, err
	}
	return race(func(int) (bool, error) {
		_, got, err := r.token(ctx, r.exchange())
		return got.Access != "", err
	})
}

// raceRefresh goes on with the winner's token.
func (r *remote) raceRefresh(ctx context.Context) func() (int, error) {
	var refresh string
	return func() (int, error) {
		if refresh == "" {
			granted, err := r.granted(ctx)
			if err != nil {
				return 0, err
			}
			refresh = granted.Refresh
		}
		var next atomic.Value
		won, err := race(func(int) (bool, error) {
			_, got, err := r.token(ctx, r.refreshing(refresh))
			if got.Refresh != "" {
				next.Store(got.Refresh)
			}
			return got.Refresh != "", err
		})
		refresh, _ = next.Load().(string)
		return won, err
	}
}

// raceRevocation refreshes in many hands while the owner ends the grants, which
// counts as the one winner when nobody refreshes once that was acknowledged.
func (r *remote) raceRevocation(ctx context.Context, c *computer) (int, error) {
	granted := make([]string, 3) // one may allow only so often in a minute
	for i := range granted {
		got, err := r.granted(ctx)
		if err != nil {
			return 0, err
		}
		granted[i] = got.Refresh
	}
	var over atomic.Bool
	var late atomic.Int64
	won, err := race(func(i int) (bool, error) {
		if i == atOnceEach-1 {
			defer over.Store(true)
			return true, c.endGrants(ctx)
		}
		for token, n := granted[i%len(granted)], 0; n < 10_000; n++ {
			ended := over.Load() // before the refresh is asked for
			_, got, err := r.token(ctx, r.refreshing(token))
			if err != nil || got.Refresh == "" {
				return false, err
			}
			if ended {
				late.Add(1)
				return false, nil
			}
			token = got.Refresh
		}
		return false, errors.New("the grant is never ended")
	})
	return won + int(late.Load()), err
}

// endGrants ends all grants, as the owner.
func (c *computer) endGrants(ctx context.Context) error {
	for range 100 {
		grants, err := c.owner.Grants(ctx)
		if err != nil || len(grants) == 0 {
			return err
		}
		if _, err := c.owner.RevokeGrant(ctx, grants[0].ID); err != nil {
			return err
		}
	}
	return errors.New("there are always more grants")
}

func (c *computer) raceInvitation(ctx context.Context) func() (int, error) {
	n := 0
	return func() (int, error) {
		n++
		email := fmt.Sprintf("p%d@example.net", n)
		if _, err := c.owner.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: []string{"Notes"}}); err != nil {
			return 0, err
		}
		link, err := c.mails.Link(ctx, email)
		if err != nil {
			return 0, err
		}
		browsers := make([]*visitor.Visitor, atOnceEach)
		pages := make([]*visitor.Page, atOnceEach)
		for i := range browsers {
			browsers[i] = visitor.New(c.roots)
			defer browsers[i].Close()
			if pages[i], err = browsers[i].Open(ctx, link); err != nil {
				return 0, err
			}
		}
		return race(func(i int) (bool, error) {
			page, err := browsers[i].Submit(ctx, pages[i], "", nil)
			if err != nil {
				return false, err
			}
			return page.Status == http.StatusOK && page.URL.Host != pages[i].URL.Host, nil
		})
	}
}

func (c *computer) raceOpen(ctx context.Context) (int, error) {
	link, err := c.owner.Open(ctx, "notes")
	if err != nil {
		return 0, err
	}
	browsers := make([]*visitor.Visitor, atOnceEach)
	for i := range browsers {
		browsers[i] = visitor.New(c.roots)
		defer browsers[i].Close()
	}
	return race(func(i int) (bool, error) {
		page, err := browsers[i].Open(ctx, link.URL)
		if err != nil {
			return false, err
		}
		return page.Status == http.StatusOK && page.Body == "seen /\n", nil
	})
}
