package tray

import (
	"golang.org/x/sys/windows/registry"

	"porchlight/assets"
)

// defaultPanel follows the taskbar's theme.
func defaultPanel() assets.Panel {
	key, err := registry.OpenKey(registry.CURRENT_USER, `Software\Microsoft\Windows\CurrentVersion\Themes\Personalize`, registry.QUERY_VALUE)
	if err != nil {
		return assets.OnDark
	}
	defer key.Close()
	if light, _, err := key.GetIntegerValue("SystemUsesLightTheme"); err == nil && light == 1 {
		return assets.OnLight
	}
	return assets.OnDark
}

// anyPanel: the taskbar's theme is known here, and ICOs have no outline.
const anyPanel = assets.OnDark
