package desktop

import (
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

// watchedDesk has the menu follow what is changed in the window.
type watchedDesk struct {
	ui.Desk
	changed func()
}

func (d watchedDesk) SetStartAtLogin(on bool) error {
	defer d.changed()
	return d.Desk.SetStartAtLogin(on)
}
