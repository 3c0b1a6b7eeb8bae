package agentapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// FuzzEventReader: any bytes end in io.EOF or an error, events come out whole
// whichever way the bytes arrive, and a name is never without its data.
func FuzzEventReader(f *testing.F) {
	for _, seed := range []string{
		"event: state\ndata: {}\n\n", ":\n\n:\n\n", "data\n\n", "event: a\n\ndata: b\n\n",
		"data: 1\r\ndata: 2\r\n\r\n", "data: cut", "\n\n\n", "id: 1\nretry: 2\ndata:3\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		read := func(size int) (events []string) {
			r := eventReader{lines: bufio.NewReaderSize(strings.NewReader(stream), size), heard: func() {}}
			for {
				name, data, err := r.next()
				if errors.Is(err, io.EOF) {
					return events
				}
				programs.Must(t, err)
				events = append(events, name+"\x00"+string(data))
			}
		}
		whole, parts := read(4096), read(16)
		if strings.Join(whole, "\x01") != strings.Join(parts, "\x01") {
			t.Fatalf("%q at once, %q in parts", whole, parts)
		}
		if blocks := strings.Count(stream, "data"); len(whole) > blocks {
			t.Fatalf("%d events of %d lines of data", len(whole), blocks)
		}
	})
}

// TestEventTooLarge: an endless line, or an event of endless lines, does not
// fill the memory.
func TestEventTooLarge(t *testing.T) {
	t.Parallel()
	for what, piece := range map[string]string{
		"line":  strings.Repeat("x", 1<<16),
		"event": "data: " + strings.Repeat("x", 1<<16) + "\n",
	} {
		r := eventReader{lines: bufio.NewReader(&endless{piece: []byte(piece)}), heard: func() {}}
		if _, _, err := r.next(); !errors.Is(err, errEventTooLarge) {
			t.Errorf("an endless %s: %v", what, err)
		}
	}
}

// endless repeats a piece for ever.
type endless struct {
	piece []byte
	rest  []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest = bytes.Clone(e.piece)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
