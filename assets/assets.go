// Package assets holds the pictures of the desktop app: the tray icons in their
// five states and the app icon. The SVG files beside the PNGs are the sources;
// `go generate` renders them again.
package assets

import (
	"embed"
	"fmt"
)

//go:generate go run ./icongen tray
//go:generate sh -c "for n in 16 32 48 64 128 256 512 1024; do rsvg-convert -w $$n -h $$n app/icon.svg -o app/icon-$$n.png; done"
//go:generate go run ./icongen -icns app/icon.icns app

//go:embed tray/*.png tray/*.ico
var tray embed.FS

// AppIcon is the app icon, a PNG of 256 × 256 pixels.
//
//go:embed app/icon-256.png
var AppIcon []byte

// AppIconSmall is the app icon, a PNG of 48 × 48 pixels: the size notification
// daemons show.
//
//go:embed app/icon-48.png
var AppIconSmall []byte

// Panel says what the icon is drawn on.
type Panel string

const (
	OnDark   Panel = "on-dark"  // light drawing for a dark panel
	OnLight  Panel = "on-light" // dark drawing for a light panel
	Outline  Panel = "outline"  // dark with a light edge, for a panel that may be either
	Template Panel = "template" // black; macOS recolours it
)

// TrayPNG returns the tray icon of a state ("off", "ready", "connected",
// "waiting" or "trouble") in a size of 16, 22, 32 or 44 pixels; Outline has 22 and 44.
// An icon that does
// not exist is a mistake of the programmer and panics.
func TrayPNG(state string, size int, panel Panel) []byte {
	return mustRead(fmt.Sprintf("tray/tray-%s-%d-%s.png", state, size, panel))
}

// TrayICO returns the same for Windows, all its sizes in one file. There is none
// for Template and Outline.
func TrayICO(state string, panel Panel) []byte {
	return mustRead(fmt.Sprintf("tray/tray-%s-%s.ico", state, panel))
}

func mustRead(name string) []byte {
	b, err := tray.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return b
}
