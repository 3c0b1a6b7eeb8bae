package clienthello_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"

	"porchlight/control/relay/clienthello"
	"porchlight/test/programs"
)

func readAll(raw []byte) (clienthello.Hello, bool, error) {
	var r clienthello.Reader
	return r.Read(raw)
}

func TestHello(t *testing.T) {
	t.Parallel()
	whole := programs.ClientHello(t, &tls.Config{ServerName: "Notes.Maya.LocalHost", NextProtos: []string{"h2", "acme-tls/1"}})
	for name, raw := range map[string][]byte{
		"one record":           whole,
		"records of 100 bytes": programs.Fragments(whole, 100),
		"records of one byte":  programs.Fragments(whole, 1),
		"bytes behind it":      append(bytes.Clone(whole), "more"...),
	} {
		hello, done, err := readAll(raw)
		if err != nil || !done || hello.ServerName != "notes.maya.localhost" || !hello.Offers("acme-tls/1") || hello.Offers("acme") {
			t.Errorf("%s: %+v, %v, %v", name, hello, done, err)
		}
		// Byte by byte, with one reader: done exactly once everything is there.
		var r clienthello.Reader
		for n := range raw {
			got, done, err := r.Read(raw[:n])
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
			if done {
				if name != "bytes behind it" || got.ServerName != hello.ServerName {
					t.Fatalf("%s: done after %d of %d bytes", name, n, len(raw))
				}
				break
			}
		}
	}
	if hello, done, err := readAll(programs.ClientHello(t, &tls.Config{InsecureSkipVerify: true})); err != nil || !done || hello.ServerName != "" {
		t.Errorf("no name: %+v, %v, %v", hello, done, err)
	}
}

func TestHelloRefused(t *testing.T) {
	t.Parallel()
	whole := programs.ClientHello(t, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"h2"}})
	change := func(at int, to byte) []byte { b := bytes.Clone(whole); b[at] = to; return b }
	name := bytes.Index(whole, []byte("\x00\x00\x00\x13\x00\x11\x00\x00\x0e"))
	if name < 0 {
		t.Fatal("the hello is not as expected")
	}
	for what, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"another record":       {change(0, 0x17), clienthello.ErrMalformed},
		"SSL 2":                {change(1, 2), clienthello.ErrMalformed},
		"an empty record":      {[]byte{clienthello.Handshake, 3, 1, 0, 0}, clienthello.ErrMalformed},
		"a huge record":        {[]byte{clienthello.Handshake, 3, 1, 0x40, 1}, clienthello.ErrMalformed},
		"a server hello":       {change(5, 2), clienthello.ErrMalformed},
		"a message too long":   {change(6, 1), clienthello.ErrTooLong},
		"an extension cut off": {change(name+3, 0x12), clienthello.ErrMalformed},
		"a name of no length":  {change(name+8, 0), clienthello.ErrMalformed},
		"another kind of name": {change(name+6, 1), clienthello.ErrMalformed},
		"a huge session id":    {change(5+4+34, 33), clienthello.ErrMalformed},
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
	with := func(extensions string) []byte {
		hello := body + string([]byte{0, byte(len(extensions))}) + extensions
		message := string([]byte{1, 0, 0, byte(len(hello))}) + hello
		return []byte(string([]byte{clienthello.Handshake, 3, 1, 0, byte(len(message))}) + message)
	}
	if hello, done, err := readAll(with(extension)); err != nil || !done || hello.ServerName != "a.test" {
		t.Fatalf("once: %+v, %v", hello, err)
	}
	if _, _, err := readAll(with(extension + extension)); err == nil {
		t.Fatal("twice was taken")
	}
}

func TestHostName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Maya.LOCALHOST.": "maya.localhost", "a_b-c.d": "a_b-c.d", "": "", ".": "", "a b": "", "a\x00b": "", "maya.localhost/": "",
		"münchen.example": "", strings.Repeat("a", 254): "", "::1": "",
	} {
		if got := clienthello.HostName(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzHello(f *testing.F) {
	whole := programs.ClientHello(f, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"acme-tls/1"}})
	f.Add(whole, 1)
	f.Add(programs.Fragments(whole, 50), 7)
	f.Add(programs.Fragments(whole, 1), 3)
	f.Add([]byte("GET / HTTP/1.1\r\n"), 2)
	f.Add([]byte{clienthello.Handshake, 3, 1, 0, 1, 1}, 1)
	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		if len(raw) > clienthello.MaxSize || step <= 0 {
			return
		}
		hello, done, err := readAll(raw)
		// However it arrives, it means the same.
		var r clienthello.Reader
		var got clienthello.Hello
		var gotDone bool
		var gotErr error
		for n := min(step, len(raw)); ; n = min(n+step, len(raw)) {
			got, gotDone, gotErr = r.Read(raw[:n])
			if gotDone || gotErr != nil || n == len(raw) {
				break
			}
		}
		if gotDone != done || (gotErr == nil) != (err == nil) || got.ServerName != hello.ServerName || !slices.Equal(got.Protocols, hello.Protocols) {
			t.Fatalf("at once %+v %v %v, in pieces %+v %v %v", hello, done, err, got, gotDone, gotErr)
		}
		if clienthello.HostName(hello.ServerName) != hello.ServerName {
			t.Fatalf("%q is not normal", hello.ServerName)
		}
	})
}

// FuzzHelloLikeTLS compares with the reader that will see the same bytes at the
// agent: where that one takes a hello, both must read the same name and whether
// it is a challenge's.
func FuzzHelloLikeTLS(f *testing.F) {
	whole := programs.ClientHello(f, &tls.Config{ServerName: "maya.localhost", NextProtos: []string{"h2", "acme-tls/1"}})
	f.Add(whole)
	f.Add(programs.Fragments(whole, 99))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > clienthello.MaxSize {
			return
		}
		var seen *tls.ClientHelloInfo
		conn := &programs.OnlyReads{Reader: bytes.NewReader(raw)}
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
		if want := clienthello.HostName(seen.ServerName); hello.ServerName != want {
			t.Fatalf("the relay reads %q, the agent %q", hello.ServerName, seen.ServerName)
		}
		if hello.Offers("acme-tls/1") != slices.Contains(seen.SupportedProtos, "acme-tls/1") {
			t.Fatalf("the relay reads %q, the agent %q", hello.Protocols, seen.SupportedProtos)
		}
	})
}
