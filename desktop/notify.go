package desktop

import (
	"context"
	"slices"
	"sync"
	"time"

	"porchlight/desktop/notes"
	"porchlight/internal/broadcast"
)

// announcing notifies the owner until ctx ends.
func (a *app) announcing(ctx context.Context) {
	kept := a.settings.get()
	an := notes.NewAnnouncer(notes.Told{Notice: kept.LastNotice, Grant: kept.LastGrant, Server: kept.Server}, time.Now)
	again := time.AfterFunc(time.Hour, func() { broadcast.Raise(a.newNoteState) })
	defer again.Stop()
	coalesce(ctx, a.newNoteState, func() {
		if in := a.announce(ctx, an); in > 0 {
			again.Reset(in)
		}
	})
}

// announce shows the notifications the snapshot calls for, and returns when to
// look again at the latest; 0 for when there is a new one.
func (a *app) announce(ctx context.Context, an *notes.Announcer) (again time.Duration) {
	s, known := a.snapshot()
	if !known {
		return 0
	}
	before := an.Told
	c := an.Next(s, sync.OnceValue(func() []string { return a.quietKinds(ctx) }))
	for _, key := range c.Drop {
		a.notes.Drop(ctx, key)
	}
	for _, n := range c.Show {
		if err := a.notes.Show(ctx, n); err != nil {
			a.log.Warn("a notification could not be shown", "about", n.Key, "err", err)
		}
	}
	if an.Told != before {
		if err := a.settings.change(func(v *settingsValues) {
			v.LastNotice, v.LastGrant, v.Server = an.Told.Notice, an.Told.Grant, an.Told.Server
		}); err != nil {
			a.log.Warn("settings were not saved", "err", err)
		}
	}
	return c.Again
}

// quietKinds are those the owner does not want to hear of; none where that
// cannot be asked: too much is better than nothing.
func (a *app) quietKinds(ctx context.Context) []string {
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
	return s.Quiet
}

// tell shows a note that is not about a snapshot.
func (a *app) tell(n notes.Note) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), patience)
	defer cancel()
	if err := a.notes.Show(ctx, n); err != nil {
		a.log.Warn("a notification could not be shown", "about", n.Key, "err", err)
		return
	}
	if n.Life > 0 && len(n.Buttons) > 0 { // its buttons do nothing any more then
		time.AfterFunc(n.Life, func() { a.notes.Drop(a.ctx, n.Key) })
	}
}

// tellUnlessQuiet is tell, where the owner wants to hear of the kind.
func (a *app) tellUnlessQuiet(ctx context.Context, n notes.Note) {
	if n.Kind == "" || !slices.Contains(a.quietKinds(ctx), n.Kind) {
		a.tell(n)
	}
}
