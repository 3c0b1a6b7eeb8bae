package tray

import "porchlight/assets"

// panelOf is what the tray icon is drawn on: "light", "dark" or "outline", as the owner
// chose, or what this system tells.
func panelOf(chosen string) assets.Panel {
	switch chosen {
	case "light":
		return assets.OnLight
	case "dark":
		return assets.OnDark
	case "outline":
		return anyPanel
	}
	return defaultPanel()
}
