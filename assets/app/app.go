// Package app holds the app icon as browsers take it for what they install: in the
// sizes they ask for, and to the edge of its square where the system cuts it to its own
// shape.
package app

import _ "embed"

//go:generate sh -c "rsvg-convert -w 192 -h 192 icon.svg -o icon-192.png && rsvg-convert -w 192 -h 192 icon-full.svg -o icon-full-192.png && rsvg-convert -w 180 -h 180 icon-full.svg -o icon-touch-180.png"

// Icon192, Icon512, Full192 and Touch180 are PNGs of that many pixels; the last two fill
// their square.
var (
	//go:embed icon-192.png
	Icon192 string
	//go:embed icon-512.png
	Icon512 string
	//go:embed icon-full-192.png
	Full192 string
	//go:embed icon-touch-180.png
	Touch180 string
)
