// Package style is what every page of Porchlight looks like: the design tokens,
// the style sheet of the pages a server renders, and their icon. The control
// plane's pages, the agent's and the window stand on the same files.
package style

import _ "embed"

// Pages is the style sheet of rendered pages, tokens included (CSS).
func Pages() string { return tokens + pages }

// Admin is the style sheet of /admin, on top of Pages (CSS).
func Admin() string { return admin }

// Icon is the icon of those pages (SVG).
func Icon() string { return icon }

// Times says the times of those pages in their reader's own time (JavaScript).
func Times() string { return times }

//go:embed times.js
var times string

//go:embed tokens.css
var tokens string // the window imports this file too

//go:embed pages.css
var pages string

//go:embed admin.css
var admin string

//go:embed icon.svg
var icon string
