package relay

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"slices"
	"testing"

	"porchlight/test/programs"
)

// Checked: a hello, in one record or several, says the same in pieces that TLS makes little room
// for; and what else there is stays as it came.
func TestHelloInPieces(t *testing.T) {
	t.Parallel()
	const head = 5
	one := programs.ClientHello(t, &tls.Config{ServerName: testAuthHost})
	half := head + (len(one)-head)/2
	two := slices.Concat(record(one[head:half]), record(one[half:]))
	other := []byte("\x14\x03\x03\x00\x01\x01")
	for name, b := range map[string][]byte{"one": one, "two": two} {
		rest := inPieces(append(bytes.Clone(b), other...))
		var said []byte
		for len(rest) > len(other) {
			end := head + int(binary.BigEndian.Uint16(rest[3:]))
			if end > pieceSize || !bytes.Equal(rest[:3], one[:3]) {
				t.Fatalf("%s: a record of %d bytes, %x", name, end, rest[:head])
			}
			said, rest = append(said, rest[head:end]...), rest[end:]
		}
		if !bytes.Equal(said, one[head:]) || !bytes.Equal(rest, other) {
			t.Errorf("%s: %d bytes of %d, and then %x", name, len(said), len(one)-head, rest)
		}
	}
	for _, b := range [][]byte{nil, other, one[:4], one[:half], {22, 3, 1, 0, 0}, {22, 3, 1, 0, 0, 1}} {
		if got := inPieces(b); !bytes.Equal(got, b) {
			t.Errorf("%x is changed to %x", b, got)
		}
	}
}

// record is a record of a hello.
func record(b []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(len(b))), b...)
}
