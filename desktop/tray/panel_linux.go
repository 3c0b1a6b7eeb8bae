package tray

import (
	"os"
	"slices"
	"strings"

	"porchlight/assets"
)

// darkPanels are the desktops whose panel is dark whatever the theme.
var darkPanels = []string{"GNOME", "Unity", "Pantheon"}

// defaultPanel is dark where the desktop's panel always is. No desktop tells the
// colour of its panel, and everywhere else both are common.
func defaultPanel() assets.Panel {
	for name := range strings.SplitSeq(os.Getenv("XDG_CURRENT_DESKTOP"), ":") {
		if slices.Contains(darkPanels, name) {
			return assets.OnDark
		}
	}
	return assets.Outline
}

const anyPanel = assets.Outline
