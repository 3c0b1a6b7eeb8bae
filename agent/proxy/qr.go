package proxy

import (
	"fmt"
	"html/template"
	"strings"

	"rsc.io/qr"
)

// qrOf draws an address as a QR code, for a telephone to read; empty where that would be led
// to itself by it, or where it is too long for one.
func qrOf(host, address string) template.HTML {
	code, err := qr.Encode(address, qr.L)
	if err != nil || strings.HasSuffix("."+withoutPort(host), ".localhost") {
		return ""
	}
	const quiet = 2 // modules of white around it
	size := code.Size + 2*quiet
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" width="200" height="200" aria-hidden="true"><path fill="#fff" d="M0 0h%dv%dH0z"/><path fill="#000" shape-rendering="crispEdges" d="`, size, size, size, size)
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&b, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return template.HTML(b.String()) // made of numbers alone
}
