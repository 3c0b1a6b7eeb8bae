package desktop

import (
	"context"
	"errors"

	"porchlight/desktop/autostart"
	"porchlight/desktop/ui"
)

// startsAtLogin says whether this very program starts when the owner logs in;
// false where that cannot be told.
func startsAtLogin() bool {
	path, err := program()
	if err != nil {
		return false
	}
	on, _ := autostart.Enabled(path)
	return on
}

// watchedDesk has the menu follow what is changed in the window, and the window
// know what the app waits for.
type watchedDesk struct {
	ui.Desk
	app *app
}

func (d watchedDesk) SetStartAtLogin(on bool) error {
	defer d.app.draw()
	return d.Desk.SetStartAtLogin(on)
}

func (d watchedDesk) Preferences(ctx context.Context) ui.Preferences {
	out := d.Desk.Preferences(ctx)
	switch err := d.app.waitsFor(); {
	case errors.Is(err, errNoKeychain):
		out.SecretKept = "nowhere"
	case errors.Is(err, errLockedKeychain):
		out.SecretKept = "locked"
	}
	return out
}

func (d watchedDesk) KeepInFile() error {
	if !errors.Is(d.app.waitsFor(), errNoKeychain) {
		return nil // a keychain came first
	}
	if err := d.Desk.KeepInFile(); err != nil {
		return err
	}
	raise(d.app.chosenFile)
	return nil
}
