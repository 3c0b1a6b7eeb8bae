package desktop

import (
	"context"
	"errors"
	"time"

	"porchlight/agent/export"
	"porchlight/agent/ownersecret"
	"porchlight/desktop/shortcut"
	"porchlight/desktop/tray"
	"porchlight/desktop/ui"
	"porchlight/internal/autostart"
	"porchlight/internal/broadcast"
)

// startsAtLogin says whether this program starts when the owner logs in;
// false where that cannot be told.
func startsAtLogin() bool {
	path, err := program()
	if err != nil {
		return false
	}
	on, _ := autostart.Enabled(path)
	return on
}

// desk is the desktop app as the window changes it. The menu follows what is
// changed, and the window learns what the app waits for.
type desk struct {
	*preferences
	app *app
}

var _ ui.Desktop = desk{}

func (d desk) StartAtLogin(on bool) error {
	defer d.app.draw()
	return d.preferences.StartAtLogin(on)
}

func (d desk) Panel(panel string) error {
	defer d.app.tray.Redraw()
	return d.preferences.Panel(panel)
}

func (d desk) Shortcut(on bool) error {
	if err := d.app.listen(on); err != nil {
		return err
	}
	return d.settings.change(func(v *settingsValues) { v.Shortcut = on })
}

func (d desk) Preferences() ui.Preferences {
	out := d.preferences.Preferences()
	out.NoTray = !tray.Hosted()
	out.Shortcut = ui.Shortcut{Offered: shortcut.Offered(), On: d.app.keys.given.Load() != nil, Keys: d.app.keysGiven()}
	switch err := d.app.waitsFor(); {
	case errors.Is(err, ownersecret.ErrUnavailable):
		out.SecretKept = "nowhere"
	case errors.Is(err, ownersecret.ErrLocked):
		out.SecretKept = "locked"
	}
	return out
}

func (d desk) KeepInFile() error {
	if !errors.Is(d.app.waitsFor(), ownersecret.ErrUnavailable) {
		return nil // a keychain came first
	}
	if err := d.preferences.KeepInFile(); err != nil {
		return err
	}
	broadcast.Raise(d.app.chosenFile)
	return nil
}

func (d desk) Quit() { d.app.quit() }

func (d desk) Unlock() { d.app.unlockKeychain() }

func (d desk) Open(app string) error {
	ctx, cancel := context.WithTimeout(d.app.ctx, patience)
	defer cancel()
	return d.app.open(ctx, app)
}

// Export asks the agent first: nobody should choose a place for what cannot be had.
func (d desk) Export() (saved string, err error) {
	c, err := d.app.agent()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(d.app.ctx, patience)
	defer cancel()
	now := time.Now()
	all, err := export.Gather(ctx, c, now)
	if err != nil {
		return "", err
	}
	path, err := d.app.window.Place(export.FileName(now))
	if err != nil || path == "" {
		return "", err
	}
	return path, all.Save(path)
}
