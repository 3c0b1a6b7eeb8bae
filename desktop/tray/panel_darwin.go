package tray

import "porchlight/assets"

// defaultPanel: macOS recolours template icons by itself.
func defaultPanel() assets.Panel { return assets.Template }

const anyPanel = assets.Template
