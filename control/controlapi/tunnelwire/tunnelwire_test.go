package tunnelwire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"porchlight/test/programs"
)

func TestFrameRoundTrip(t *testing.T) {
	t.Parallel()
	in := Frame{Type: Open, Tickets: []Ticket{NewTicket(), NewTicket()}, TLS: true}
	var b bytes.Buffer
	programs.Must(t, WriteFrame(&b, in))
	out, err := ReadFrame(&b)
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Fatalf("got %+v, %v", out, err)
	}
	if _, err := ReadFrame(&b); err != io.EOF {
		t.Fatalf("a clean end is %v, want io.EOF", err)
	}
}

// The frames that go without the decoder mean what they would with it, and no others do.
func TestBeatsAreTheFramesTheyWere(t *testing.T) {
	t.Parallel()
	for _, sent := range []int64{0, 1, 9, 10, 1 << 40, math.MaxInt64, -1} {
		for _, f := range []Frame{{Type: Ping, Sent: sent}, {Type: Ping, Awake: true, Sent: sent}, {Type: Pong, Sent: sent}, {Type: Pong, Sent: sent, Date: 1795909461}} {
			var b bytes.Buffer
			programs.Must(t, WriteFrame(&b, f))
			body := bytes.Clone(b.Bytes()[4:])
			if want := programs.Got(json.Marshal(f))(t); !bytes.Equal(body, want) {
				t.Errorf("%s is written, and would be %s", body, want)
			}
			if out := programs.Got(ReadFrame(&b))(t); !reflect.DeepEqual(out, f) {
				t.Errorf("%s is read as %+v", body, out)
			}
			if _, ok := parseBeat(body); ok != (f.Type == Ping && sent > 0) {
				t.Errorf("%s goes without the decoder: %v", body, ok)
			}
		}
	}
}

// A node with many computers asleep reads and writes little else.
func TestBeatsLeaveLittleGarbage(t *testing.T) { // not beside others, whose garbage would be counted
	var b bytes.Buffer
	programs.Must(t, WriteFrame(&b, Frame{Type: Ping, Sent: 1 << 40}))
	in := bytes.NewReader(b.Bytes())
	if n := testing.AllocsPerRun(100, func() {
		in.Reset(b.Bytes())
		if _, err := ReadFrame(in); err != nil {
			t.Error(err)
		}
	}); n > 3 {
		t.Errorf("reading a ping takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		programs.Must(t, WriteFrame(io.Discard, Frame{Type: Pong, Sent: 1 << 40, Date: 1795909461}))
	}); n > 1 {
		t.Errorf("writing a pong takes %v allocations", n)
	}
}

// FuzzBeat has no bytes mean something else without the decoder than with it.
func FuzzBeat(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ping","sent":12}`, `{"type":"ping","awake":true,"sent":12}`, `{"type":"ping","sent":+1}`, `{"type":"ping","sent":01}`,
		`{"type":"ping","sent":1_0}`, `{"type":"ping","sent":1e3}`, `{"type":"ping","sent":9223372036854775808}`, `{"type":"ping","sent":`, `{"type":"ping","sent":}`,
		`{"type":"ping","sent":1}}`, `{"type":"ping","sent":1`, `{"type":"ping","sent":1 }`, `{"type":"ping","sent":1,"sent":2}`, `{"type":"ping"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fast, ok := parseBeat(body)
		if !ok {
			return
		}
		if slow, err := parse(body); err != nil || !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: %+v, with the decoder %+v, %v", body, fast, slow, err)
		}
	})
}

func TestFullOpenFrameFits(t *testing.T) {
	t.Parallel()
	f := Frame{Type: Open, TLS: true}
	for range MaxTickets {
		f.Tickets = append(f.Tickets, NewTicket())
	}
	programs.Must(t, WriteFrame(io.Discard, f))
}

func TestReadFrameRefuses(t *testing.T) {
	t.Parallel()
	secret := "very-secret-credential"
	for name, in := range map[string]string{
		"empty":       "\x00\x00\x00\x00",
		"too long":    "\x00\x00\x40\x01" + strings.Repeat(" ", maxFrame+1),
		"not JSON":    "\x00\x00\x00\x16" + secret,
		"no type":     "\x00\x00\x00\x02{}",
		"wrong type":  "\x00\x00\x00\x0a{\"type\":1}",
		"bad ticket":  "\x00\x00\x00\x21{\"type\":\"open\",\"tickets\":[\"abc\"]}",
		"not an aray": "\x00\x00\x00\x02[]",
	} {
		_, err := ReadFrame(strings.NewReader(in))
		if !errors.Is(err, errFrame) {
			t.Errorf("%s: %v, want ErrFrame", name, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes what was read", name)
		}
	}
	if _, err := ReadFrame(strings.NewReader("\x00\x00\x00\x10{")); err != io.ErrUnexpectedEOF {
		t.Errorf("cut off inside: %v", err)
	}
}

func TestTicketText(t *testing.T) {
	t.Parallel()
	in := NewTicket()
	text := programs.Got(json.Marshal(in))(t)
	var out Ticket
	if err := json.Unmarshal(text, &out); err != nil || !in.Equal(out) {
		t.Fatalf("%v", err)
	}
	for _, bad := range []string{`""`, `"x"`, `"` + strings.Repeat("?", 43) + `"`, `"` + strings.Repeat("A", 44) + `"`, `"` + strings.Repeat("A", 42) + `B"`} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if s := in.String(); strings.Contains(string(text), s) && s != "ticket" {
		t.Error("String shows the ticket")
	}
}

func TestPreamble(t *testing.T) {
	t.Parallel()
	in := NewTicket()
	whole := AppendPreamble(nil, in)
	for n := range len(whole) {
		_, more, err := ParsePreamble(whole[:n])
		if err != nil || more != len(whole)-n {
			t.Fatalf("%d bytes: %d more, %v", n, more, err)
		}
	}
	out, more, err := ParsePreamble(whole)
	if err != nil || more != 0 || !in.Equal(out) {
		t.Fatalf("%d more, %v", more, err)
	}
	if _, _, err := ParsePreamble(append(whole, 'x')); !errors.Is(err, errPreamble) {
		t.Fatalf("bytes behind it: %v", err)
	}
	if _, _, err := ParsePreamble([]byte("\x0eplX")); !errors.Is(err, errPreamble) {
		t.Fatalf("another magic: %v", err)
	}
}

var headerCases = []struct{ source, destination string }{
	{"203.0.113.9:51234", "198.51.100.1:443"},
	{"[2001:db8::7]:51234", "[2001:db8::1]:443"},
	{"203.0.113.9:1", "[2001:db8::1]:65535"},
	{"[::ffff:203.0.113.9]:1", "[::ffff:198.51.100.1]:443"},
}

func TestHeaderRoundTripAndStandard(t *testing.T) {
	t.Parallel()
	key, ticket := NewHeaderKey([]byte("0123456789abcdef0123456789abcdef")), NewTicket()
	for _, c := range headerCases {
		source, destination := netip.MustParseAddrPort(c.source), netip.MustParseAddrPort(c.destination)
		b := key.AppendHeader([]byte("before"), ticket, source, destination)[len("before"):]
		if len(b) > maxHeader || len(b) != HeaderSize(source, destination) {
			t.Fatalf("%d bytes, HeaderSize says %d", len(b), HeaderSize(source, destination))
		}
		for n := range len(b) {
			if _, _, size, err := key.ParseHeader(b[:n], ticket); err != nil || size != 0 {
				t.Fatalf("%d bytes: size %d, %v", n, size, err)
			}
		}
		s, d, n, err := key.ParseHeader(append(b[:len(b):len(b)], "rest"...), ticket)
		if err != nil || n != len(b) {
			t.Fatalf("size %d, %v", n, err)
		}
		if s.Addr() != source.Addr().Unmap() || s.Port() != source.Port() || d.Addr() != destination.Addr().Unmap() || d.Port() != destination.Port() {
			t.Fatalf("%v → %v came back as %v → %v", source, destination, s, d)
		}
		// Another implementation reads the same addresses.
		h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(b)))
		if err != nil || h.Version != 2 || h.Command != proxyproto.PROXY {
			t.Fatalf("another reader: %+v, %v", h, err)
		}
		if got := netip.MustParseAddrPort(h.SourceAddr.String()); got.Addr().Unmap() != s.Addr() || got.Port() != s.Port() {
			t.Fatalf("another reader: source %v", got)
		}
	}
}

// Every single bit of the header is either authenticated or of known value, and
// neither another ticket nor another key makes a header valid.
func TestHeaderForged(t *testing.T) {
	t.Parallel()
	key, ticket := NewHeaderKey([]byte("0123456789abcdef0123456789abcdef")), NewTicket()
	b := key.AppendHeader(nil, ticket, netip.MustParseAddrPort("203.0.113.9:51234"), netip.MustParseAddrPort("198.51.100.1:443"))
	for i := range len(b) * 8 {
		forged := bytes.Clone(b)
		forged[i/8] ^= 1 << (i % 8)
		if _, _, n, err := key.ParseHeader(forged, ticket); err == nil && n != 0 {
			t.Fatalf("bit %d of byte %d may be changed", i%8, i/8)
		}
	}
	if _, _, _, err := key.ParseHeader(b, NewTicket()); err != ErrForged {
		t.Fatalf("another ticket: %v", err)
	}
	if _, _, _, err := NewHeaderKey([]byte("another")).ParseHeader(b, ticket); err != ErrForged {
		t.Fatalf("another key: %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0f{\"type\":\"ping\"}"))
	f.Add([]byte("\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := ReadFrame(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteFrame(&out, in); err != nil {
			return // escaping can make it longer than a frame may be
		}
		again, err := ReadFrame(&out)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if again.Type != in.Type || len(again.Tickets) != len(in.Tickets) {
			t.Fatalf("%+v became %+v", in, again)
		}
	})
}

func FuzzParsePreamble(f *testing.F) {
	f.Add(AppendPreamble(nil, Ticket{1, 2, 3}))
	f.Add([]byte(Magic))
	f.Add([]byte{0x16, 3, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		ticket, more, err := ParsePreamble(b)
		if err != nil || more > 0 {
			return
		}
		if !bytes.Equal(AppendPreamble(nil, ticket), b) {
			t.Fatalf("%x was read as something else", b)
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	key, ticket := NewHeaderKey([]byte("key")), Ticket{7}
	for _, c := range headerCases {
		f.Add(key.AppendHeader(nil, ticket, netip.MustParseAddrPort(c.source), netip.MustParseAddrPort(c.destination)))
	}
	f.Add([]byte("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		source, destination, n, err := key.ParseHeader(b, ticket)
		if err != nil || n == 0 {
			return
		}
		// IPv4 addresses may have been written in the IPv6 form; what was read
		// must then at least be read again from our own writing.
		again := key.AppendHeader(nil, ticket, source, destination)
		s, d, _, err := key.ParseHeader(again, ticket)
		if err != nil || s != source || d != destination {
			t.Fatalf("%v → %v became %v → %v, %v", source, destination, s, d, err)
		}
	})
}

// A part and a version within their bounds come back as they were; longer ones are no frame.
func TestPartsOfSnapshots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		part, version int
		fine          bool
	}{{MaxPart, maxVersion, true}, {MaxPart + 1, 0, false}, {0, maxVersion + 1, false}} {
		var b bytes.Buffer
		sent := Frame{Type: Synced, Part: bytes.Repeat([]byte{0xff}, tt.part), Version: strings.Repeat("v", tt.version)}
		programs.Must(t, WriteFrame(&b, sent))
		got, err := ReadFrame(&b)
		if fine := err == nil && bytes.Equal(got.Part, sent.Part) && got.Version == sent.Version; fine != tt.fine {
			t.Errorf("%d and %d bytes: %v", tt.part, tt.version, err)
		}
	}
}
