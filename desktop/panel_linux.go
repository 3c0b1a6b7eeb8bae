package desktop

import "porchlight/assets"

// defaultPanel is dark: so are the panels of most desktops, and none of them
// tells.
func defaultPanel() assets.Panel { return assets.OnDark }
