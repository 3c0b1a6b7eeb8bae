// Command icongen renders the tray icons: for each assets/tray/*.svg a PNG of
// the same size beside it, and one ICO for Windows with the three sizes of a
// state and panel.
//
// The drawings are whole-pixel rectangles in one fill per path, and nothing
// else is understood: a general renderer would soften the edges, and a tray host
// garbles half-transparent pixels.
//
//	go run ./assets/icongen assets/tray
//
// With -icns it packs the app icon's PNGs for macOS instead:
//
//	go run ./assets/icongen -icns assets/app/icon.icns assets/app
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	bundle := flag.String("icns", "", "pack icon-N.png of DIRECTORY into this file")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: icongen [-icns FILE] DIRECTORY")
		os.Exit(2)
	}
	var err error
	if *bundle != "" {
		err = writeICNS(*bundle, flag.Arg(0))
	} else {
		err = run(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "icongen:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		return err
	}
	icons := map[string][]*image.NRGBA{} // state-panel → 16, 22, 32 px
	for _, file := range files {
		img, err := render(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		var out bytes.Buffer
		enc := png.Encoder{CompressionLevel: png.BestCompression}
		if err := enc.Encode(&out, img); err != nil {
			return err
		}
		if err := os.WriteFile(strings.TrimSuffix(file, ".svg")+".png", out.Bytes(), 0o644); err != nil {
			return err
		}
		// tray-STATE-SIZE-PANEL.svg; Windows has no template icons, knows its panel, and
		// takes 16 to 32 pixels.
		part := strings.SplitN(strings.TrimSuffix(filepath.Base(file), ".svg"), "-", 4)
		if len(part) == 4 && strings.HasPrefix(part[3], "on-") && part[2] != "44" {
			key := part[1] + "-" + part[3]
			icons[key] = append(icons[key], img)
		}
	}
	for key, imgs := range icons {
		if err := os.WriteFile(filepath.Join(dir, "tray-"+key+".ico"), ico(imgs), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rect is one sub-path: M x y h w v h h -w z.
var rect = regexp.MustCompile(`^M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z`)

func render(file string) (*image.NRGBA, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var svg struct {
		Width  int `xml:"width,attr"`
		Height int `xml:"height,attr"`
		Paths  []struct {
			Fill string `xml:"fill,attr"`
			D    string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal(raw, &svg); err != nil {
		return nil, err
	}
	img := image.NewNRGBA(image.Rect(0, 0, svg.Width, svg.Height))
	for _, p := range svg.Paths {
		fill, err := parseColour(p.Fill)
		if err != nil {
			return nil, err
		}
		for d := p.D; d != ""; {
			m := rect.FindStringSubmatch(d)
			if m == nil || m[3] != m[5] {
				return nil, fmt.Errorf("not a rectangle: %q", d)
			}
			d = d[len(m[0]):]
			var n [4]int
			for i := range n {
				n[i], _ = strconv.Atoi(m[i+1])
			}
			draw.Draw(img, image.Rect(n[0], n[1], n[0]+n[2], n[1]+n[3]), image.NewUniform(fill), image.Point{}, draw.Src)
		}
	}
	return img, nil
}

func parseColour(s string) (color.NRGBA, error) {
	s = strings.TrimPrefix(s, "#")
	if len(s) == 3 {
		s = string([]byte{s[0], s[0], s[1], s[1], s[2], s[2]})
	}
	v, err := strconv.ParseUint(s, 16, 32)
	if err != nil || len(s) != 6 {
		return color.NRGBA{}, fmt.Errorf("not a colour: %q", s)
	}
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}, nil
}

// ico packs images as 32-bit bitmaps: the notification area of Windows does not
// take PNG entries at small sizes everywhere.
func ico(imgs []*image.NRGBA) []byte {
	var dir, data bytes.Buffer
	le := func(b *bytes.Buffer, v ...any) {
		for _, x := range v {
			_ = binary.Write(b, binary.LittleEndian, x) // a bytes.Buffer does not fail
		}
	}
	le(&dir, uint16(0), uint16(1), uint16(len(imgs)))
	offset := 6 + 16*len(imgs)
	for _, img := range imgs {
		w, h := img.Rect.Dx(), img.Rect.Dy()
		maskRow := (w + 31) / 32 * 4
		size := 40 + 4*w*h + maskRow*h
		le(&dir, uint8(w), uint8(h), uint8(0), uint8(0), uint16(1), uint16(32), uint32(size), uint32(offset+data.Len()))
		// BITMAPINFOHEADER; the height counts colours and mask.
		le(&data, uint32(40), int32(w), int32(2*h), uint16(1), uint16(32), uint32(0), uint32(4*w*h), int32(0), int32(0), uint32(0), uint32(0))
		for y := h - 1; y >= 0; y-- {
			for x := 0; x < w; x++ {
				c := img.NRGBAAt(x, y)
				data.Write([]byte{c.B, c.G, c.R, c.A})
			}
		}
		for y := h - 1; y >= 0; y-- {
			row := make([]byte, maskRow)
			for x := 0; x < w; x++ {
				if img.NRGBAAt(x, y).A == 0 {
					row[x/8] |= 0x80 >> (x % 8)
				}
			}
			data.Write(row)
		}
	}
	return append(dir.Bytes(), data.Bytes()...)
}
