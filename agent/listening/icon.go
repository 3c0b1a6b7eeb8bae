package listening

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
)

const (
	iconSize = 64  // of what is drawn, in pixels
	maxSide  = 512 // of what is read: a picture that says more is not decoded
)

// redraw makes a PNG of iconSize of a PNG, a JPEG or an ICO; nil of anything else.
// Whatever else was in the file is not in what comes out.
func redraw(raw []byte) []byte {
	picture := decode(raw)
	if picture == nil {
		return nil
	}
	var out bytes.Buffer
	if png.Encode(&out, fit(picture)) != nil {
		return nil
	}
	return out.Bytes()
}

// decode tells the kinds apart by their first bytes, whatever the server said. The size
// a file says it has is looked at before anything is made of that size.
func decode(raw []byte) image.Image {
	switch {
	case bytes.HasPrefix(raw, []byte("\x89PNG\r\n\x1a\n")):
		if c, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil || !bounded(c.Width, c.Height) {
			return nil
		}
		return readable(png.Decode(bytes.NewReader(raw)))
	case bytes.HasPrefix(raw, []byte("\xff\xd8\xff")):
		if c, err := jpeg.DecodeConfig(bytes.NewReader(raw)); err != nil || !bounded(c.Width, c.Height) {
			return nil
		}
		return readable(jpeg.Decode(bytes.NewReader(raw)))
	case bytes.HasPrefix(raw, []byte("\x00\x00\x01\x00")):
		return decodeICO(raw)
	}
	return nil
}

func bounded(width, height int) bool {
	return width > 0 && height > 0 && width <= maxSide && height <= maxSide
}

func readable(picture image.Image, err error) image.Image {
	if err != nil {
		return nil
	}
	return picture
}

// fit draws a picture in the middle of a square, as large as it goes.
func fit(from image.Image) *image.NRGBA {
	b := from.Bounds()
	longer := max(b.Dx(), b.Dy())
	width, height := max(1, b.Dx()*iconSize/longer), max(1, b.Dy()*iconSize/longer)
	left, top := (iconSize-width)/2, (iconSize-height)/2
	out := image.NewNRGBA(image.Rect(0, 0, iconSize, iconSize))
	for y := range height {
		for x := range width {
			area := image.Rect(x*b.Dx()/width, y*b.Dy()/height, (x+1)*b.Dx()/width, (y+1)*b.Dy()/height)
			out.Set(left+x, top+y, mean(from, area.Add(b.Min)))
		}
	}
	return out
}

// mean is the colour of an area; of its first pixel where it has none.
func mean(from image.Image, area image.Rectangle) color.RGBA64 {
	area.Max.X, area.Max.Y = max(area.Max.X, area.Min.X+1), max(area.Max.Y, area.Min.Y+1)
	var r, g, b, a, n uint64
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			pr, pg, pb, pa := from.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(pr), g+uint64(pg), b+uint64(pb), a+uint64(pa), n+1
		}
	}
	return color.RGBA64{uint16(r / n), uint16(g / n), uint16(b / n), uint16(a / n)}
}

const (
	icoHead  = 6  // bytes: reserved, type, count
	icoEntry = 16 // bytes: width, height, colours, reserved, planes, bits, length, offset
	maxIcons = 32 // pictures of one file that are looked at
)

// decodeICO reads the picture that is nearest to what is drawn. Each is a PNG or a
// bitmap; what the directory says of its size is not believed.
func decodeICO(raw []byte) (best image.Image) {
	if len(raw) < icoHead {
		return nil
	}
	count := min(int(binary.LittleEndian.Uint16(raw[4:])), maxIcons, (len(raw)-icoHead)/icoEntry)
	var chosen []byte
	rank := -1
	for i := range count {
		entry := raw[icoHead+i*icoEntry:][:icoEntry]
		length, offset := uint64(binary.LittleEndian.Uint32(entry[8:])), uint64(binary.LittleEndian.Uint32(entry[12:]))
		if offset+length > uint64(len(raw)) || length == 0 {
			continue
		}
		side := int(entry[0])
		if side == 0 {
			side = 256
		}
		r := side
		if side > iconSize {
			r = iconSize + 256 - side // larger ones are drawn smaller; the least too large is best
		}
		if r > rank {
			rank, chosen = r, raw[offset:offset+length]
		}
	}
	if bytes.HasPrefix(chosen, []byte("\x89PNG")) {
		return decode(chosen)
	}
	return decodeBitmap(chosen)
}
