package assets

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"testing"

	"porchlight/test/programs"
)

var states = []string{"off", "ready", "connected", "waiting", "trouble"}

// Tray hosts garble half-transparent pixels, so an icon has none; and the five
// states are five different drawings in every variant.
func TestTrayIconsHaveHardEdges(t *testing.T) {
	t.Parallel()
	for _, panel := range []Panel{OnDark, OnLight, Template, Outline} {
		for _, size := range []int{16, 22, 32, 44} {
			if panel == Outline && (size == 16 || size == 32) {
				continue
			}
			seen := map[string]string{}
			for _, state := range states {
				raw := TrayPNG(state, size, panel)
				if other, ok := seen[string(raw)]; ok {
					t.Errorf("%s and %s are the same drawing (%d, %s)", state, other, size, panel)
				}
				seen[string(raw)] = state
				img := programs.Got(png.Decode(bytes.NewReader(raw)))(t)
				if b := img.Bounds(); b.Dx() != size || b.Dy() != size {
					t.Errorf("%s is %v, want %d pixels", state, b, size)
				}
				if _, _, _, corner := img.At(0, size-1).RGBA(); corner != 0 {
					t.Errorf("%s %d %s has a ground of its own", state, size, panel)
				}
				drawn := 0
				for y := range size {
					for x := range size {
						switch _, _, _, a := img.At(x, y).RGBA(); a {
						case 0:
						case 0xffff:
							drawn++
						default:
							t.Fatalf("%s %d %s: half-transparent pixel at %d,%d", state, size, panel, x, y)
						}
					}
				}
				if drawn == 0 {
					t.Errorf("%s %d %s is empty", state, size, panel)
				}
			}
		}
	}
}

func TestTrayICOListsThreeSizes(t *testing.T) {
	t.Parallel()
	for _, panel := range []Panel{OnDark, OnLight} {
		for _, state := range states {
			ico := TrayICO(state, panel)
			if n := binary.LittleEndian.Uint16(ico[4:]); n != 3 {
				t.Fatalf("%s %s holds %d images, want 3", state, panel, n)
			}
			end := uint32(len(ico))
			last := ico[6+2*16:]
			if got := binary.LittleEndian.Uint32(last[8:]) + binary.LittleEndian.Uint32(last[12:]); got != end {
				t.Errorf("%s %s: last image ends at %d of %d bytes", state, panel, got, end)
			}
		}
	}
}
