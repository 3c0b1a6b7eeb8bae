//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"porchlight/agent/agentapi"
)

// band is a guest whom a group alone lets into an app.
type band struct {
	*guest
	group string // id
	port  int    // of the app
}

// attackGroups takes an app from somebody whom a group lets in, in each way there is, and
// goes on using it: by a session, an access token and an app password, by what is open and by
// signing in anew; and after a withdrawal for this one person by whatever else groups can do.
func attackGroups(ctx context.Context, s *stage, t *tally) error {
	port, end, err := serveSockets()
	if err != nil {
		return err
	}
	defer end()
	c, err := s.startComputer(ctx, s.dir+"/data")
	if err != nil {
		return err
	}
	b := &band{guest: &guest{computer: c}, port: port}
	if b.host, err = c.publish(ctx, "notes", "Notes", port); err != nil {
		return err
	}
	if _, err := c.publish(ctx, "wiki", "Wiki", port); err != nil {
		return err
	}
	if _, err := c.open.Register(ctx, agentapi.RegisterRequest{AppID: "org.example.groups", PID: os.Getpid()}); err != nil {
		return err
	}
	var person agentapi.Person
	if b.browser, person, err = c.invite(ctx, memberEmail, "Wiki"); err != nil {
		return err
	}
	defer b.browser.Close()
	b.id = person.AccountID
	if b.remote, err = c.newRemoteOf(ctx, s, "Pocket Notes", callback, memberEmail); err != nil {
		return err
	}
	defer b.remote.browser.Close()
	if b.group, err = b.made(ctx, "Family"); err != nil {
		return err
	}
	rounds := 4
	if s.quick {
		rounds = 1
	}
	fmt.Printf("   rounds %d × acts %d × ways 3 × protocols %d, + after withdrawals by %d acts of groups, + open WebSockets, new sign-in and new token\n",
		rounds, len(b.acts()), len(datedProtocols), len(b.regains()))
	for range rounds {
		for _, act := range b.acts() {
			if err := b.round(ctx, act, t); err != nil {
				return fmt.Errorf("%s: %w", act.what, err)
			}
		}
	}
	return b.removed(ctx, t)
}

// made is a group that opens Notes to the guest.
func (b *band) made(ctx context.Context, name string) (id string, err error) {
	made, err := b.owner.AddGroup(ctx, agentapi.GroupNamed{Name: name})
	if err != nil {
		return "", err
	}
	if _, err := b.owner.GrantGroup(ctx, made.Group.ID, agentapi.GroupAppRequest{App: "Notes"}); err != nil {
		return "", err
	}
	_, err = b.owner.JoinGroup(ctx, made.Group.ID, agentapi.MemberRequest{AccountID: b.id})
	return made.Group.ID, err
}

// endingAct takes the app away, and is taken back.
type endingAct struct {
	what     string
	do, back func(context.Context) error
	person   bool // it is a withdrawal for this one person
}

func (b *band) acts() []endingAct {
	taken := agentapi.AccessRequest{AccountID: b.id, App: "Notes"}
	member, app := agentapi.MemberRequest{AccountID: b.id}, agentapi.GroupAppRequest{App: "Notes"}
	did := func(_ any, err error) error { return err }
	forever := func(ctx context.Context) error {
		return did(b.owner.GrantGroup(ctx, b.group, agentapi.GroupAppRequest{App: "Notes", Until: agentapi.UntilNever}))
	}
	return []endingAct{
		{"a program's withdrawal", func(ctx context.Context) error { return did(b.open.SetAccess(ctx, taken)) }, b.undoNotice, true},
		{"the owner's withdrawal", func(ctx context.Context) error { return did(b.owner.SetAccess(ctx, taken)) }, b.undoing(agentapi.ActivityWithdrawn), true},
		{"leaving", func(ctx context.Context) error { return did(b.owner.LeaveGroup(ctx, b.group, member)) },
			func(ctx context.Context) error { return did(b.owner.JoinGroup(ctx, b.group, member)) }, false},
		{"the group's withdrawal", func(ctx context.Context) error { return did(b.owner.WithdrawGroup(ctx, b.group, app)) },
			func(ctx context.Context) error { return did(b.owner.GrantGroup(ctx, b.group, app)) }, false},
		{"the group's removal", func(ctx context.Context) error { return did(b.owner.RemoveGroup(ctx, b.group)) }, b.undoing(agentapi.ActivityGroupRemoved), false},
		{"an end", b.end, forever, false},
	}
}

// regains are acts of groups after which what was withdrawn from one person stays so.
func (b *band) regains() map[string]func(context.Context) error {
	member := agentapi.MemberRequest{AccountID: b.id}
	return map[string]func(context.Context) error{
		"joining again": func(ctx context.Context) error {
			_, err := b.owner.LeaveGroup(ctx, b.group, member)
			_, again := b.owner.JoinGroup(ctx, b.group, member)
			return errors.Join(err, again)
		},
		"joining another group": func(ctx context.Context) error {
			other, err := b.made(ctx, "Friends")
			_, removed := b.owner.RemoveGroup(ctx, other)
			return errors.Join(err, removed, b.undoing(agentapi.ActivityGroupRemoved)(ctx)) // had back, it opens Notes still
		},
		"another end": func(ctx context.Context) error {
			_, err := b.owner.GrantGroup(ctx, b.group, agentapi.GroupAppRequest{App: "Notes", Until: "1h"})
			_, never := b.owner.GrantGroup(ctx, b.group, agentapi.GroupAppRequest{App: "Notes", Until: agentapi.UntilNever})
			return errors.Join(err, never)
		},
		"publishing anew": func(ctx context.Context) error {
			_, err := b.open.Unpublish(ctx, "notes")
			_, live := b.open.Publish(ctx, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: b.port})
			return errors.Join(err, live)
		},
	}
}

// round takes the app away once, goes on using it, and takes that back.
func (b *band) round(ctx context.Context, act endingAct, t *tally) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	var open []net.Conn
	for what, way := range b.ways {
		if err := known(ctx, func() error { return b.isOpen(ctx, way) }); err != nil {
			return fmt.Errorf("before, %s gets %w", what, err)
		}
		conn, err := b.socket(ctx, way)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	if err := act.do(ctx); err != nil {
		return err
	}
	if err := b.tryAll(ctx, "after "+act.what, t); err != nil {
		return err
	}
	for _, conn := range open {
		conn.SetReadDeadline(time.Now().Add(patience))
		t.try(1)
		if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.got("a WebSocket that was open goes on after %s: %v", act.what, err)
		}
	}
	if act.person {
		for what, regain := range b.regains() {
			if err := regain(ctx); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if err := b.tryAll(ctx, "after "+act.what+" and "+what, t); err != nil {
				return err
			}
			if err := b.removeOthers(ctx); err != nil {
				return err
			}
		}
	}
	if err := b.comeBack(ctx, t); err != nil {
		return err
	}
	return act.back(ctx)
}

func (b *band) isOpen(ctx context.Context, way [2]string) error {
	got, err := datedProtocols["HTTP/1.1"](ctx, b.guest, way)
	if err == nil && !lets(got) {
		err = fmt.Errorf("HTTP %d", got)
	}
	return err
}

// tryAll asks by all ways.
func (b *band) tryAll(ctx context.Context, when string, t *tally) error {
	for what, way := range b.ways {
		for name, ask := range datedProtocols {
			got, err := ask(ctx, b.guest, way)
			if err != nil {
				return err
			}
			t.try(1)
			if lets(got) {
				t.got("%s over %s opens the app %s", what, name, when)
			}
		}
	}
	return nil
}

// removeOthers leaves the one group.
func (b *band) removeOthers(ctx context.Context) error {
	groups, err := b.owner.Groups(ctx)
	for _, g := range groups {
		if g.ID != b.group {
			_, gone := b.owner.RemoveGroup(ctx, g.ID)
			err = errors.Join(err, gone)
		}
	}
	return err
}

// end has the group open the app until a moment from now, and waits for that.
func (b *band) end(ctx context.Context) error {
	changed, err := b.owner.GrantGroup(ctx, b.group, agentapi.GroupAppRequest{App: "Notes", Until: "1s"})
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(changed.Group.Until["Notes"])):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undoing takes back the newest decision of a kind.
func (b *band) undoing(kind string) func(context.Context) error {
	return func(ctx context.Context) error {
		page, err := b.owner.ActivityPage(ctx, agentapi.ActivityQuery{Limit: 100, Group: agentapi.GroupDecisions})
		if err != nil {
			return err
		}
		for _, line := range page.Lines {
			if line.Kind == kind && line.Undo {
				return b.owner.UndoActivity(ctx, line.ID)
			}
		}
		return fmt.Errorf("no %s can be undone", kind)
	}
}

// undoNotice takes back what a program did last.
func (b *band) undoNotice(ctx context.Context) error {
	state, err := b.owner.State(ctx)
	if err != nil {
		return err
	}
	for i := len(state.Notices) - 1; i >= 0; i-- {
		if state.Notices[i].Undo {
			return b.owner.UndoNotice(ctx, state.Notices[i].ID)
		}
	}
	return errors.New("no notice can be undone")
}

// removed removes the person, invites them anew, and has them try.
func (b *band) removed(ctx context.Context, t *tally) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if _, err := b.owner.Remove(ctx, b.id); err != nil {
		return err
	}
	if err := b.tryAll(ctx, "after removal", t); err != nil {
		return err
	}
	browser, _, err := b.invite(ctx, memberEmail, "Wiki")
	if err != nil {
		return err
	}
	defer browser.Close()
	if err := b.tryAll(ctx, "after removal and a fresh invitation", t); err != nil {
		return err
	}
	page, err := browser.Open(ctx, "https://"+b.host+"/hello")
	if err != nil {
		return err
	}
	t.try(1)
	if page.Status == 200 {
		t.got("a fresh invitation restores a group, at %s", page.URL)
	}
	groups, err := b.owner.Groups(ctx)
	t.try(1)
	if err == nil && (len(groups) != 1 || len(groups[0].Members) > 0) {
		t.got("a fresh invitation restores a membership: %+v", groups)
	}
	return err
}
