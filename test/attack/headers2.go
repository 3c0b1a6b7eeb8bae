//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// stream sends one request over an HTTP/2 connection of its own, its fields just
// as given, and returns the answer; status 0 is a reset or a closed connection.
// trailers follow a body, when there are any.
func (c *computer) stream(ctx context.Context, host string, fields, trailers []hpack.HeaderField) (answer, error) {
	conn, err := c.secure(ctx, host, "h2")
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.SetDeadline(time.Now().Add(patience))
	var out bytes.Buffer // what follows a refusal may not be writable any more
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&out, conn)
	framer.AllowIllegalWrites = true
	e := newEncoder()
	_ = framer.WriteSettings() // into memory, like all of these
	writeHead(framer, 1, e.block(fields), trailers == nil)
	if trailers != nil {
		_ = framer.WriteData(1, false, []byte("hello"))
		writeHead(framer, 1, e.block(trailers), true)
	}
	_, _ = conn.Write(out.Bytes())
	return readAnswer(framer, 1)
}

type encoder struct {
	buf bytes.Buffer
	*hpack.Encoder
}

func newEncoder() *encoder {
	e := &encoder{}
	e.Encoder = hpack.NewEncoder(&e.buf)
	return e
}

func (e *encoder) block(fields []hpack.HeaderField) []byte {
	e.buf.Reset()
	for _, f := range fields {
		_ = e.WriteField(f) // into memory
	}
	return bytes.Clone(e.buf.Bytes())
}

// writeHead cuts a block that is too long for one frame.
func writeHead(f *http2.Framer, id uint32, block []byte, end bool) {
	const most = 16 << 10
	n := min(len(block), most)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndStream: end, EndHeaders: n == len(block)})
	for block = block[n:]; len(block) > 0; block = block[n:] {
		n = min(len(block), most)
		_ = f.WriteContinuation(id, n == len(block), block[:n])
	}
}

// readAnswer reads frames until the answer to a stream is whole.
func readAnswer(framer *http2.Framer, id uint32) (got answer, err error) {
	decoder := hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		switch {
		case errors.Is(err, io.EOF), err != nil && !strings.Contains(err.Error(), "timeout"):
			return answer{}, nil
		case err != nil:
			return answer{}, errors.New("no answer comes")
		}
		switch f := frame.(type) {
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return answer{}, nil
			}
		case *http2.GoAwayFrame:
			if f.LastStreamID < id {
				return got, nil
			}
		case *http2.HeadersFrame:
			fields, err := decoder.DecodeFull(f.HeaderBlockFragment())
			if err != nil {
				return got, err
			}
			for _, field := range fields {
				if field.Name == ":status" {
					got.status, _ = strconv.Atoi(field.Value) // 0 is no answer
				}
			}
		case *http2.DataFrame:
			got.body += string(f.Data())
		}
		if h := frame.Header(); h.StreamID == id && h.Flags.Has(http2.FlagDataEndStream) && (h.Type == http2.FrameData || h.Type == http2.FrameHeaders) {
			return got, nil
		}
	}
}

// spelling2 writes fields of HTTP/2.
type spelling2 struct {
	what  string
	name  func(string) string
	value string // empty: the mark
	twice string // a first one with this value
}

func behind(suffix string) func(string) string {
	return func(name string) string { return strings.ToLower(name) + suffix }
}

var spellings2 = []spelling2{
	{what: "as it is"},
	{what: "capitals", name: func(n string) string { return n }},
	{what: "underscores", name: with("-", "_")},
	{what: "dots", name: with("-", ".")},
	{what: "tildes", name: with("-", "~")},
	{what: "space behind the name", name: behind(" ")},
	{what: "NUL behind the name", name: behind("\x00")},
	{what: "colon behind the name", name: behind(":")},
	{what: "a line in the name", name: func(n string) string { return "x-a: b\r\n" + n }},
	{what: "hyphens of another script", name: with("-", "\u2010")},
	{what: "as a pseudo-header", name: func(n string) string { return ":" + n }},
	{what: "twice", twice: mark},
	{what: "empty, then forged", twice: " "},
	{what: "of 20 KiB, in two frames", value: mark + strings.Repeat("x", 20<<10)},
	{what: "a line in the value", value: "x\r\nX-Service-Role: " + mark},
	{what: "a bare LF in the value", value: "x\n" + mark},
}

func (s spelling2) fields(name string) []hpack.HeaderField {
	if s.name != nil {
		name = s.name(name)
	}
	if s.what != "capitals" {
		name = strings.ToLower(name)
	}
	value := s.value
	if value == "" {
		value = mark
	}
	fields := []hpack.HeaderField{{Name: name, Value: value, Sensitive: s.twice == ""}}
	if s.twice != "" {
		fields = append([]hpack.HeaderField{{Name: name, Value: strings.TrimSpace(s.twice)}}, fields...)
	}
	return fields
}

var places2 = []string{"in the head", "before the cookie", "in a declared trailer", "in a trailer nobody declared"}

// forgery2 is a request with one forged field, spelled and placed.
func forgery2(b *backend, target, name string, how spelling2, where int) (fields, trailers []hpack.HeaderField) {
	bad := how.fields(name)
	head := func(method string, more ...hpack.HeaderField) []hpack.HeaderField {
		return append([]hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"},
			{Name: ":authority", Value: b.host}, {Name: ":path", Value: target}, {Name: "origin", Value: "https://" + b.host}}, more...)
	}
	cookie := hpack.HeaderField{Name: "cookie", Value: b.cookie}
	switch where {
	case 0:
		return head("GET", append([]hpack.HeaderField{cookie}, bad...)...), nil
	case 1:
		return head("GET", append(bad, cookie)...), nil
	case 2:
		return head("POST", cookie, hpack.HeaderField{Name: "trailer", Value: "x-late, " + bad[0].Name}), append(bad, hpack.HeaderField{Name: "x-late", Value: "yes"})
	default:
		return head("POST", cookie), bad
	}
}

// attackHeaders2 is attackHeaders over HTTP/2, frame by frame.
func attackHeaders2(ctx context.Context, s *stage, t *tally) error {
	on, err := s.startGround(ctx)
	if err != nil {
		return err
	}
	cases := grid{}.axis("names", len(forged)).axis("spellings", len(spellings2)).axis("places", len(places2)).
		axis("back ends", len(on.backends)).pick(s.quick, 300)
	err = atOnce(len(cases), 8, func(i int) error {
		at := cases[i]
		target := fmt.Sprintf("/h2/%d", i)
		what := fmt.Sprintf("%s %s %s", forged[at[0]], spellings2[at[1]].what, places2[at[2]])
		return on.attack(at[3], target, what, t, func(b *backend) ([]answer, error) {
			fields, trailers := forgery2(b, target, forged[at[0]], spellings2[at[1]], at[2])
			got, err := on.stream(ctx, b.host, fields, trailers)
			return []answer{got}, err
		})
	})
	if err != nil {
		return err
	}
	return on.judgeAll(t)
}
