package http2

import (
	"bytes"

	"golang.org/x/net/http2/hpack"
)

// A program that sends an access token sends it with every request, as a literal in
// Huffman's code, because a secret is to be kept out of the table of HPACK. To decode
// it costs more than all else about such a head. So a connection keeps one long string
// that came twice, coded and decoded, and gives the decoder the text where the same
// bytes come again. The decoder reads the same fields then as it would have read.

const (
	// leastKnown and mostKnown are how long such a string is, in coded bytes.
	leastKnown = 64
	mostKnown  = 1 << 10
	// mostBlock is how long the block that it is in may be.
	mostBlock = 2 << 10
)

// known is the string of one connection. The goroutine that reads has it.
type known struct {
	coded []byte
	text  string // empty while it came once
	block []byte // room for a block with the text in place of the code
}

// plainer is the block to decode in place of one that is whole: the same, or one that
// says the same.
func (k *known) plainer(block []byte) []byte {
	if len(block) > mostBlock {
		return block
	}
	at := longCoded(block)
	coded := block[at.text:at.end]
	switch {
	case len(coded) == 0:
		return block
	case !bytes.Equal(coded, k.coded):
		k.coded, k.text = append(k.coded[:0], coded...), ""
		return block
	case k.text == "":
		text, err := hpack.HuffmanDecodeToString(coded)
		if err != nil {
			return block // the decoder says so
		}
		k.text = text
	}
	k.block = append(k.block[:0], block[:at.length]...)
	k.block = appendLength(k.block, len(k.text))
	k.block = append(append(k.block, k.text...), block[at.end:]...)
	return k.block
}

// coded is where a string in Huffman's code stands in a block.
type coded struct{ length, text, end int }

// longCoded finds the longest one among the values that stay out of the table, which
// come again as they are. It finds none in a block that it cannot read to its end.
func longCoded(block []byte) (found coded) {
	for at := 0; at < len(block); {
		value, next, ok := fieldAt(block, at)
		if !ok {
			return coded{}
		}
		out := block[at]&0xe0 == 0
		if size := value.end - value.text; out && size >= leastKnown && size <= mostKnown && size > found.end-found.text {
			found = value
		}
		at = next
	}
	return found
}

// fieldAt reads where a field, or what sets the table's size, ends, and where its value is
// when that is coded.
func fieldAt(block []byte, at int) (value coded, next int, ok bool) {
	if at == len(block) {
		return coded{}, 0, false
	}
	first := block[at]
	bits, strings := 0, 1
	switch {
	case first&0x80 != 0: // indexed
		bits, strings = 7, 0
	case first&0xc0 == 0x40: // to be indexed
		bits = 6
	case first&0xe0 == 0x20: // the table's size
		bits, strings = 5, 0
	default:
		bits = 4
	}
	index, next, ok := number(block, at, bits)
	if ok && strings > 0 && index == 0 { // the name is a string, too
		_, next, ok = stringAt(block, next)
	}
	if ok && strings > 0 {
		value, next, ok = stringAt(block, next)
	}
	return value, next, ok
}

// stringAt reads where a string is. One that is not coded has no place.
func stringAt(block []byte, at int) (place coded, next int, ok bool) {
	size, text, ok := number(block, at, 7)
	if !ok || size > len(block)-text {
		return coded{}, 0, false
	}
	if next = text + size; block[at]&0x80 != 0 {
		place = coded{at, text, next}
	}
	return place, next, true
}

// number reads an integer whose first bits are in a byte with others (RFC 7541, section
// 5.1). One that is too large for anything here is not ok.
func number(block []byte, at, bits int) (n, next int, ok bool) {
	if at >= len(block) {
		return 0, 0, false
	}
	most := 1<<bits - 1
	if n = int(block[at]) & most; n < most {
		return n, at + 1, true
	}
	for shift := 0; shift < 63; shift += 7 { // as the decoder has it
		if at++; at >= len(block) {
			return 0, 0, false
		}
		n += int(block[at]&0x7f) << shift
		if block[at]&0x80 == 0 {
			return n, at + 1, n >= 0
		}
	}
	return 0, 0, false
}

// appendLength writes the length of a string that is not coded.
func appendLength(b []byte, n int) []byte {
	const most = 1<<7 - 1
	if n < most {
		return append(b, byte(n))
	}
	b = append(b, most)
	for n -= most; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
