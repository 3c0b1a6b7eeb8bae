package desktop

import (
	"context"
	"sync"
	"time"
)

// announcing notifies the owner until ctx ends.
func (a *app) announcing(ctx context.Context) {
	kept := a.settings.get()
	an := newAnnouncer(told{notice: kept.LastNotice, grant: kept.LastGrant, server: kept.Server}, time.Now)
	again := time.AfterFunc(time.Hour, func() { raise(a.newNoteState) })
	defer again.Stop()
	coalesce(ctx, a.newNoteState, func() {
		if in := a.announce(ctx, an); in > 0 {
			again.Reset(in)
		}
	})
}

// announce shows the notifications the snapshot calls for, and returns when to
// look again at the latest; 0 for when there is a new one.
func (a *app) announce(ctx context.Context, an *announcer) (again time.Duration) {
	s, known := a.snapshot()
	if !known {
		return 0
	}
	before := an.told
	c := an.next(s, sync.OnceValue(func() quiet { return a.quietKinds(ctx) }))
	for _, key := range c.drop {
		a.notes.drop(ctx, key)
	}
	for _, n := range c.show {
		if err := a.notes.show(ctx, n); err != nil {
			a.log.Warn("a notification could not be shown", "about", n.key, "err", err)
		}
	}
	if an.told != before {
		if err := a.settings.change(func(v *settingsValues) {
			v.LastNotice, v.LastGrant, v.Server = an.told.notice, an.told.grant, an.told.server
		}); err != nil {
			a.log.Warn("settings were not saved", "err", err)
		}
	}
	return c.again
}

// quietKinds are those the owner does not want to hear of; none where that
// cannot be asked: too much is better than nothing.
func (a *app) quietKinds(ctx context.Context) quiet {
	c, err := a.agent()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := c.Settings(ctx)
	if err != nil {
		a.log.Warn("cannot tell which notifications the owner wants", "err", err)
		return nil
	}
	return quietOf(s)
}

// tell shows a note that is not about a snapshot.
func (a *app) tell(n note) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), patience)
	defer cancel()
	if err := a.notes.show(ctx, n); err != nil {
		a.log.Warn("a notification could not be shown", "about", n.key, "err", err)
		return
	}
	if n.life > 0 && len(n.buttons) > 0 { // its buttons do nothing any more then
		time.AfterFunc(n.life, func() { a.notes.drop(a.ctx, n.key) })
	}
}

// tellUnlessQuiet is tell, where the owner wants to hear of the kind.
func (a *app) tellUnlessQuiet(ctx context.Context, n note) {
	if n.kind == "" || !a.quietKinds(ctx)[n.kind] {
		a.tell(n)
	}
}
