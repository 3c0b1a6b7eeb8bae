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
func wholeFields(block []byte) (at int) {
	for {
		_, next, ok := fieldAt(block, at)
		if !ok {
			return at
		}
		at = next
	}
}
