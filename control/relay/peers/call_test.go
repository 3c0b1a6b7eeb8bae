package peers

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"porchlight/test/programs"
)

// headSize is the size of what stands before the bytes of a visitor.
const headSize = peerHead

// gathering keeps what is written until it is let out at once.
type gathering struct {
	net.Conn
	gathers bool
	kept    []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if g.gathers {
		g.kept = append(g.kept, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// What arrives together with the answer that ends the nodes' TLS is not lost in it.
func TestWhatComesWithTheAnswerIsNotLost(t *testing.T) {
	t.Parallel()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	keys := keysOf(t, "two", peerSecret)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		takes := keys.known()
		out := &gathering{Conn: raw}
		secure := tls.Server(out, takes)
		_ = secure.Handshake()
		out.gathers = true
		_, _ = secure.Write([]byte{peerBare})
		_, _ = raw.Write(append(out.kept, "bare"...))
	}()
	one := directoryOf(Config{}, "one", time.Now, slog.New(slog.DiscardHandler))
	s := programs.Got(one.call(t.Context(), nodeRow{Node: "two", Peer: l.Addr().String()}, Visit{First: []byte("hello")}))(t)
	defer s.Reset()
	_ = s.SetReadDeadline(time.Now().Add(programs.Patience))
	got := make([]byte, 4)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "bare" {
		t.Errorf("%q, %v", got, err)
	}
}

// Strangers who reach the peers' port get nowhere, whatever certificate they
// show.
func TestPeersPort(t *testing.T) {
	t.Parallel()
	two, refused := listening(t, Config{}, "two", declines)
	own := keysOf(t, "one", peerSecret)
	stranger := keysOf(t, "one", bytes.Repeat([]byte("t"), 32))
	late, err := newKeys(always(peerSecret), "one", func() time.Time { return time.Now().Add(-peerCertLife - time.Hour) })
	programs.Must(t, err)
	if _, err := newKeys(always(peerSecret[:31]), "one", time.Now); err == nil {
		t.Error("a short secret is taken")
	}
	certificate := func(p *keys) []tls.Certificate {
		c := programs.Got(p.certificate())(t)
		return []tls.Certificate{*c}
	}
	source := netip.MustParseAddrPort("[2001:db8::7]:4711")
	request := asks(source, source, "hello")
	ask := func(config *tls.Config, request []byte) ([]byte, error) {
		conn := tls.Client(dial(t, two.cfg.Address), config)
		if err := conn.Handshake(); err != nil {
			return nil, err
		}
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		return io.ReadAll(conn)
	}
	base := func(p *keys, certs []tls.Certificate) *tls.Config {
		c := p.client("two")
		c.Certificates, c.GetClientCertificate, c.ClientSessionCache = certs, nil, nil
		return c
	}
	toTwo := func() *tls.Config { return own.client("two") }
	for name, config := range map[string]*tls.Config{
		"no certificate":              base(own, nil),
		"a stranger's":                base(own, certificate(stranger)),
		"one that is over":            base(own, certificate(late)),
		"the right one, another name": func() *tls.Config { c := own.client("three"); return c }(),
		"a stranger's trust":          stranger.client("two"),
		"an older TLS": func() *tls.Config {
			c := toTwo()
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			return c
		}(),
		"no protocol": func() *tls.Config { c := toTwo(); c.NextProtos = nil; return c }(),
	} {
		// Where the handshake itself was good, the end of the connection may come as
		// one without an error; who is served gets a byte.
		if got, err := ask(config, request); len(got) > 0 || err == nil && name != "no protocol" {
			t.Errorf("%s: answer %x, %v", name, got, err)
		}
	}
	if got, err := ask(toTwo(), request); err != nil || !bytes.Equal(got, []byte{peerUnknown}) {
		t.Errorf("a tunnel that is not here: %x, %v", got, err)
	}
	for name, request := range map[string][]byte{
		"nothing to say":   asks(source, source, ""),
		"more than 16 KiB": append(request[:headSize-2:headSize-2], 0xff, 0xff),
	} {
		if got, _ := ask(toTwo(), request); len(got) > 0 {
			t.Errorf("%s: answer %x", name, got)
		}
	}
	for _, protocol := range []string{"porchlight-peer/1", "porchlight-peer/2", "porchlight-peer-key/1"} { // of before 0.1.0
		config := toTwo()
		config.NextProtos = []string{protocol}
		if err := tls.Client(dial(t, two.cfg.Address), config).Handshake(); err == nil {
			t.Errorf("%s is spoken", protocol)
		}
	}
	programs.Eventually(t, "some are refused", func() bool { return refused.Load() > 0 })
}

// Whose address is not known comes from nowhere at the other node too, and not from the node
// itself, whom more is let to do.
func TestAnUnknownAddressStaysUnknown(t *testing.T) {
	t.Parallel()
	source, destination, _ := parsePeerHead([headSize]byte(asks(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:443"), "")))
	if !source.Addr().IsUnspecified() || source.Port() != 0 || destination.String() != "192.0.2.1:443" {
		t.Errorf("nobody to 192.0.2.1:443 became %v to %v", source, destination)
	}
}

func FuzzPeerRequest(f *testing.F) {
	source := netip.MustParseAddrPort("192.0.2.1:443")
	f.Add(asks(source, source, "hello"))
	f.Add(asks(netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8::1]:1"), "\x16"))
	f.Add(make([]byte, headSize))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < headSize {
			return
		}
		source, destination, n := parsePeerHead([headSize]byte(raw))
		again := asks(source, destination, string(make([]byte, n)))
		// The two ways to write an IPv4 address are the same address.
		s, d, m := parsePeerHead([headSize]byte(again))
		if s != source || d != destination || m != n {
			t.Fatalf("%v %v %d became %v %v %d", source, destination, n, s, d, m)
		}
	})
}
