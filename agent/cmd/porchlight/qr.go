package main

import (
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"
	"rsc.io/qr"
)

const (
	quietZone = 2 // modules of white around a code
	// White on black by the 256 colours of a terminal, which no theme changes: a
	// reader wants dark on light.
	qrColours = "\x1b[38;5;16;48;5;231m"
	qrReset   = "\x1b[0m"
)

// qr prints an address as a QR code, two modules a character. It does so only on a
// terminal that is wide enough and takes colours, and of no address that leads a
// telephone to itself.
func (t *terminal) qr(address string) {
	if u, err := url.Parse(address); err != nil || strings.HasSuffix("."+u.Hostname(), ".localhost") {
		return
	}
	to := t.out
	if read, ok := to.(readOutput); ok {
		to = read.Writer
	}
	out, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return
	}
	code, err := qr.Encode(address, qr.L)
	if err != nil {
		return // too long for one: the address is printed beside it
	}
	width := code.Size + 2*quietZone
	if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 && columns < width+2 {
		return
	}
	t.line("%s", drawQR(code, width))
}

func drawQR(code *qr.Code, width int) string {
	var b strings.Builder
	black := func(x, y int) bool { return code.Black(x-quietZone, y-quietZone) }
	for y := 0; y < width; y += 2 {
		b.WriteString("  " + qrColours)
		for x := range width {
			switch up, down := black(x, y), black(x, y+1); {
			case up && down:
				b.WriteRune('█')
			case up:
				b.WriteRune('▀')
			case down:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString(qrReset + "\n")
	}
	return b.String()
}
