package desktop

import (
	"context"
	"sync"
	"sync/atomic"

	"porchlight/desktop/language"
	"porchlight/desktop/shortcut"
	"porchlight/desktop/ui"
	"porchlight/desktop/verbs"
)

// keys are those that open the palette from anywhere.
type keys struct {
	given  atomic.Pointer[string] // what the desktop calls them; nil while it gives none
	asking sync.Mutex             // one question to the owner at a time; protects stop
	stop   func()                 // gives them back; nil where none were asked for
}

// listen has the desktop give keys, or takes what it gave back. It returns when the owner
// has answered the desktop.
func (a *app) listen(on bool) error {
	k := &a.keys
	k.asking.Lock()
	defer k.asking.Unlock()
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
	if !on {
		return nil
	}
	ctx, cancel := context.WithCancel(a.ctx)
	granted, ended := make(chan struct{}), make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		err := shortcut.Listen(ctx, language.Say("Find or do…"), func(name string) {
			k.given.Store(&name)
			a.draw()
			close(granted)
		}, func() { a.showPlace(ui.Place{View: verbs.ViewFind}) })
		if ctx.Err() == nil {
			a.log.Warn("the desktop gives no shortcut", "err", err)
		}
		k.given.Store(nil)
		a.draw()
		ended <- err
	}()
	k.stop = func() { cancel(); <-gone }
	select {
	case <-granted:
		return nil
	case err := <-ended:
		return err
	}
}

// keysGiven is what the desktop calls the keys that it gives; empty for none.
func (a *app) keysGiven() string {
	if name := a.keys.given.Load(); name != nil {
		return *name
	}
	return ""
}
