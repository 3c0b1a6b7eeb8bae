package http2

import (
	"slices"

	"porchlight/agent/proxy/limits"
)

// decode gives the decoder the fields that have ended: the room it makes for one that has not
// would stay as long as the connection does.
func (h *head) decode(part []byte, ended bool) (ok bool) {
	if len(h.unended) > 0 {
		if size := len(h.unended) + len(part); size > cap(h.unended) {
			h.unended = slices.Grow(h.unended, size) // to twice the size, for append would leave more behind
		}
		h.unended = append(h.unended, part...)
		part = h.unended
	}
	whole := len(part)
	if !ended || len(h.unended) > 0 {
		whole = wholeFields(part)
	}
	_, err := h.decoder.Write(part[:whole])
	rest := part[whole:]
	h.unended = append(h.unended[:0], rest...)
	return err == nil && (!ended || len(rest) == 0) && len(rest) <= 2*limits.String+16 // a name and a value, with their lengths
}

// letGo lets go of a field that came in parts, and has the decoder do so, which keeps what it
// was given last.
func (h *head) letGo() {
	if h.unended == nil {
		return
	}
	h.unended = nil
	h.decoder.SetEmitEnabled(false)
	_, _ = h.decoder.Write([]byte{0x82}) // a field by its number, which changes nothing
	_ = h.decoder.Close()
}

// wholeFields is how much of a block are fields that end in it.
func wholeFields(block []byte) (size int) {
	for {
		next, ok := fieldEnd(block, size)
		if !ok {
			return size
		}
		size = next
	}
}

// fieldEnd is where a field, or what sets the table's size, ends (RFC 7541, section 6).
func fieldEnd(block []byte, from int) (end int, ok bool) {
	if from == len(block) {
		return 0, false
	}
	first := block[from]
	bits, value := 4, true
	switch {
	case first&0x80 != 0: // indexed
		bits, value = 7, false
	case first&0xc0 == 0x40: // to be indexed
		bits = 6
	case first&0xe0 == 0x20: // the table's size
		bits, value = 5, false
	}
	index, end, ok := number(block, from, bits)
	if ok && value && index == 0 { // the name is a string, too
		end, ok = stringEnd(block, end)
	}
	if ok && value {
		end, ok = stringEnd(block, end)
	}
	return end, ok
}

func stringEnd(block []byte, from int) (end int, ok bool) {
	size, text, ok := number(block, from, 7)
	return text + size, ok && size <= len(block)-text
}

// number reads an integer whose first bits are in a byte with others (RFC 7541, section
// 5.1). One that is too large for anything here is not ok.
func number(block []byte, from, bits int) (n, next int, ok bool) {
	if from >= len(block) {
		return 0, 0, false
	}
	most := 1<<bits - 1
	if n = int(block[from]) & most; n < most {
		return n, from + 1, true
	}
	for shift := 0; shift < 63; shift += 7 { // as the decoder has it
		if from++; from >= len(block) {
			return 0, 0, false
		}
		n += int(block[from]&0x7f) << shift
		if block[from]&0x80 == 0 {
			return n, from + 1, n >= 0
		}
	}
	return 0, 0, false
}
