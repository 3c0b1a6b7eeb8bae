package listening

import (
	"encoding/binary"
	"image"
	"image/color"
)

// bitmapHead is the length of a BITMAPINFOHEADER, in bytes.
const bitmapHead = 40

// bitmap is a picture in an ICO: a head, a palette where a pixel has at most 8 bits,
// the pixels from the lowest line up, and a mask with a bit for each that is not drawn.
type bitmap struct {
	width, height, bits int
	palette             []byte // 4 bytes a colour: blue, green, red, nothing
	pixels, mask        []byte // mask is nil where there is none
}

// decodeBitmap is nil for what is no picture of a size that is read.
func decodeBitmap(raw []byte) image.Image {
	b, ok := readBitmap(raw)
	if !ok {
		return nil
	}
	out := image.NewNRGBA(image.Rect(0, 0, b.width, b.height))
	drawn := false
	for y := range b.height {
		for x := range b.width {
			c := b.at(x, b.height-1-y)
			drawn = drawn || c.A != 0
			out.SetNRGBA(x, y, c)
		}
	}
	if b.bits == 32 && !drawn { // made by programs that knew no transparency
		for i := 3; i < len(out.Pix); i += 4 {
			out.Pix[i] = 0xff
		}
	}
	return out
}

func readBitmap(raw []byte) (b bitmap, ok bool) {
	if len(raw) < bitmapHead || binary.LittleEndian.Uint32(raw) != bitmapHead {
		return b, false
	}
	b.width = int(int32(binary.LittleEndian.Uint32(raw[4:])))
	b.height = int(int32(binary.LittleEndian.Uint32(raw[8:]))) / 2 // the mask counts
	b.bits = int(binary.LittleEndian.Uint16(raw[14:]))
	compressed, colours := binary.LittleEndian.Uint32(raw[16:]), int(binary.LittleEndian.Uint32(raw[32:]))
	if compressed != 0 || !bounded(b.width, b.height) {
		return b, false
	}
	rest := raw[bitmapHead:]
	switch b.bits {
	case 24, 32:
		colours = 0
	case 1, 4, 8:
		if colours == 0 {
			colours = 1 << b.bits
		}
		if colours < 0 || colours > 1<<b.bits {
			return b, false
		}
	default:
		return b, false
	}
	size := line(b.width, b.bits) * b.height
	if len(rest) < 4*colours+size {
		return b, false
	}
	b.palette, b.pixels = rest[:4*colours], rest[4*colours:][:size]
	if rest = rest[4*colours+size:]; len(rest) >= line(b.width, 1)*b.height && b.bits != 32 {
		b.mask = rest
	}
	return b, true
}

// line is the length of a line, in bytes: a multiple of 4.
func line(width, bits int) int { return (width*bits + 31) / 32 * 4 }

// at is the colour of a pixel; y counts from the lowest line up.
func (b bitmap) at(x, y int) color.NRGBA {
	row := b.pixels[y*line(b.width, b.bits):]
	alpha := uint8(0xff)
	if b.mask != nil && b.mask[y*line(b.width, 1)+x/8]>>(7-x%8)&1 == 1 {
		alpha = 0
	}
	switch b.bits {
	case 32:
		p := row[4*x:]
		return color.NRGBA{p[2], p[1], p[0], p[3]}
	case 24:
		p := row[3*x:]
		return color.NRGBA{p[2], p[1], p[0], alpha}
	}
	bit := x * b.bits
	index := int(row[bit/8]>>(8-b.bits-bit%8)) & (1<<b.bits - 1)
	if 4*index+4 > len(b.palette) {
		return color.NRGBA{A: alpha}
	}
	p := b.palette[4*index:]
	return color.NRGBA{p[2], p[1], p[0], alpha}
}
