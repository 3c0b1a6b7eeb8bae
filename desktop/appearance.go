package desktop

// desktopLooks notes that the desktop is dark or light now, and has the page ask.
func (a *app) desktopLooks(dark bool) {
	if before := a.darkDesktop.Swap(&dark); before != nil && *before != dark {
		go a.window.Emit("looks", nil) // toolkits call from their own thread
	}
}

// appearance is what the window looks like: as the owner chose, or as the desktop does.
func (a *app) appearance() string {
	if chosen := a.settings.get().Appearance; chosen != "" {
		return chosen
	}
	switch dark := a.darkDesktop.Load(); {
	case dark == nil:
		return ""
	case *dark:
		return "dark"
	default:
		return "light"
	}
}
