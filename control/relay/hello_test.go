package relay

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/test/programs"
)

// recordHello returns the first bytes a real client sends.
func recordHello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, config).Handshake()
		_ = client.Close()
	}()
	b := make([]byte, 64<<10)
	n := programs.Got(server.Read(b))(t)
	for n < 5 || n < 5+int(b[3])<<8+int(b[4]) {
		more := programs.Got(server.Read(b[n:]))(t)
		n += more
	}
	return b[:n]
}

// fragment cuts the handshake bytes of one record into records of size bytes.
func fragment(record []byte, size int) []byte {
	var out []byte
	for body := range slices.Chunk(record[recordHeader:], size) {
		out = append(out, recordHandshake, 3, 1, byte(len(body)>>8), byte(len(body)))
		out = append(out, body...)
	}
	return out
}

func readAll(raw []byte) (clientHello, bool, error) {
	var r helloReader
	return r.read(raw)
}

func TestHello(t *testing.T) {
	t.Parallel()
	whole := recordHello(t, &tls.Config{ServerName: "Notes.Maya.LocalHost", NextProtos: []string{"h2", "acme-tls/1"}})
	for name, raw := range map[string][]byte{
		"one record":           whole,
		"records of 100 bytes": fragment(whole, 100),
		"records of one byte":  fragment(whole, 1),
		"bytes behind it":      append(bytes.Clone(whole), "more"...),
	} {
		hello, done, err := readAll(raw)
		if err != nil || !done || hello.serverName != "notes.maya.localhost" || !hello.offers(acmeALPN) || hello.offers("acme") {
			t.Errorf("%s: %+v, %v, %v", name, hello, done, err)
		}
		// Byte by byte, with one reader: done exactly once everything is there.
		var r helloReader
		for n := range raw {
			got, done, err := r.read(raw[:n])
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
			if done {
				if name != "bytes behind it" || got.serverName != hello.serverName {
					t.Fatalf("%s: done after %d of %d bytes", name, n, len(raw))
				}
				break
			}
		}
	}
	if hello, done, err := readAll(recordHello(t, &tls.Config{InsecureSkipVerify: true})); err != nil || !done || hello.serverName != "" {
		t.Errorf("no name: %+v, %v, %v", hello, done, err)
	}
}

func TestHelloRefused(t *testing.T) {
	t.Parallel()
	whole := recordHello(t, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"h2"}})
	change := func(at int, to byte) []byte { b := bytes.Clone(whole); b[at] = to; return b }
	name := bytes.Index(whole, []byte("\x00\x00\x00\x13\x00\x11\x00\x00\x0e"))
	if name < 0 {
		t.Fatal("the hello is not as expected")
	}
	for what, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"another record":       {change(0, 0x17), errHello},
		"SSL 2":                {change(1, 2), errHello},
		"an empty record":      {[]byte{recordHandshake, 3, 1, 0, 0}, errHello},
		"a huge record":        {[]byte{recordHandshake, 3, 1, 0x40, 1}, errHello},
		"a server hello":       {change(5, 2), errHello},
		"a message too long":   {change(6, 1), errTooLong},
		"an extension cut off": {change(name+3, 0x12), errHello},
		"a name of no length":  {change(name+8, 0), errHello},
		"another kind of name": {change(name+6, 1), errHello},
		"a huge session id":    {change(recordHeader+4+34, 33), errHello},
	} {
		if _, done, err := readAll(c.raw); done || !errors.Is(err, c.want) {
			t.Errorf("%s: done %v, %v, want %v", what, done, err, c.want)
		}
	}
}

// The name twice would leave it to each reader which one counts: the relay could
// route by one and the agent serve the other.
func TestHelloWithTwoNames(t *testing.T) {
	t.Parallel()
	extension := "\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test"
	body := strings.Repeat("\x03", 34) + "\x00" + "\x00\x02\x13\x01" + "\x01\x00"
	once := body + "\x00" + string(rune(len(extension))) + extension
	twice := body + "\x00" + string(rune(2*len(extension))) + extension + extension
	if hello, err := parseHello([]byte(once)); err != nil || hello.serverName != "a.test" {
		t.Fatalf("once: %+v, %v", hello, err)
	}
	if _, err := parseHello([]byte(twice)); err == nil {
		t.Fatal("twice was taken")
	}
}

func TestNormalName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Maya.LOCALHOST.": "maya.localhost", "a_b-c.d": "a_b-c.d", "": "", ".": "", "a b": "", "a\x00b": "", "maya.localhost/": "",
		"münchen.example": "", strings.Repeat("a", 254): "", "::1": "",
	} {
		if got := normalName(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzHello(f *testing.F) {
	whole := recordHello(f, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"acme-tls/1"}})
	f.Add(whole, 1)
	f.Add(fragment(whole, 50), 7)
	f.Add(fragment(whole, 1), 3)
	f.Add([]byte("GET / HTTP/1.1\r\n"), 2)
	f.Add([]byte{recordHandshake, 3, 1, 0, 1, 1}, 1)
	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		if len(raw) > maxPreface || step <= 0 {
			return
		}
		hello, done, err := readAll(raw)
		// However it arrives, it means the same.
		var r helloReader
		var got clientHello
		var gotDone bool
		var gotErr error
		for n := min(step, len(raw)); ; n = min(n+step, len(raw)) {
			got, gotDone, gotErr = r.read(raw[:n])
			if gotDone || gotErr != nil || n == len(raw) {
				break
			}
		}
		if gotDone != done || (gotErr == nil) != (err == nil) || got.serverName != hello.serverName || !slices.Equal(got.protocols, hello.protocols) {
			t.Fatalf("at once %+v %v %v, in pieces %+v %v %v", hello, done, err, got, gotDone, gotErr)
		}
		if normalName(hello.serverName) != hello.serverName {
			t.Fatalf("%q is not normal", hello.serverName)
		}
	})
}

// FuzzHelloLikeTLS compares with the reader that will see the same bytes at the
// agent: where that one takes a hello, both must read the same name and whether
// it is a challenge's.
func FuzzHelloLikeTLS(f *testing.F) {
	whole := recordHello(f, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"h2", "acme-tls/1"}})
	f.Add(whole)
	f.Add(fragment(whole, 99))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > maxPreface {
			return
		}
		var seen *tls.ClientHelloInfo
		conn := &onlyReads{r: bytes.NewReader(raw)}
		_ = tls.Server(conn, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			seen = info
			return nil, errors.New("enough")
		}}).Handshake()
		if seen == nil {
			return
		}
		hello, done, err := readAll(raw)
		if err != nil || !done {
			return // the relay may be the stricter one
		}
		if want := normalName(seen.ServerName); hello.serverName != want {
			t.Fatalf("the relay reads %q, the agent %q", hello.serverName, seen.ServerName)
		}
		if hello.offers(acmeALPN) != slices.Contains(seen.SupportedProtos, acmeALPN) {
			t.Fatalf("the relay reads %q, the agent %q", hello.protocols, seen.SupportedProtos)
		}
	})
}

type onlyReads struct {
	net.Conn
	r *bytes.Reader
}

func (c *onlyReads) Read(b []byte) (int, error)       { return c.r.Read(b) }
func (c *onlyReads) Write(b []byte) (int, error)      { return len(b), nil }
func (c *onlyReads) Close() error                     { return nil }
func (c *onlyReads) SetDeadline(time.Time) error      { return nil }
func (c *onlyReads) SetReadDeadline(time.Time) error  { return nil }
func (c *onlyReads) SetWriteDeadline(time.Time) error { return nil }
