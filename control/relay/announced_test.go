package relay

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"porchlight/test/programs"
)

var balancer = netip.MustParsePrefix("127.0.0.2/32")

// header is what a balancer sends for a visitor, by an implementation that is
// not ours.
func header(t testing.TB, version byte, source, destination string) []byte {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(version,
		net.TCPAddrFromAddrPort(netip.MustParseAddrPort(source)), net.TCPAddrFromAddrPort(netip.MustParseAddrPort(destination)))
	return programs.Got(h.Format())(t)
}

// TestAnnouncedVisitor: a visitor through a balancer is presented to the computer
// under the address the balancer names, is counted under it and not under the
// balancer's, and the control plane sees it.
func TestAnnouncedVisitor(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	r, addr := serveRelay(t, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{balancer}
		c.Limits.Visitors, c.Limits.VisitorsPerSource = 64, 1
		c.Handler = http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { seen <- req.RemoteAddr })
	}, nil)
	a := connectAgent(t, addr, "maya") // not from the balancer, so without a header
	hello := programs.ClientHello(t, &tls.Config{ServerName: "notes.maya.localhost"})
	var visitors []net.Conn
	for _, c := range []struct {
		version byte
		source  string
	}{{1, "198.51.100.7:4711"}, {2, "198.51.100.8:4712"}, {1, "[2001:db8::7]:4713"}, {2, "[2001:db8:1::7]:4714"}} {
		destination := "203.0.113.1:443"
		if strings.HasPrefix(c.source, "[") {
			destination = "[2001:db8:ffff::1]:443"
		}
		visitor := dialFrom(t, "127.0.0.2", addr)
		visitors = append(visitors, visitor)
		// In one write with the first bytes, and byte by byte.
		sent := append(header(t, c.version, c.source, destination), hello...)
		if c.version == 1 {
			for i := range sent {
				programs.Got(visitor.Write(sent[i : i+1]))(t)
			}
		} else if _, err := visitor.Write(sent); err != nil {
			t.Fatal(err)
		}
		ticket := a.ticket()
		data := a.open(ticket)
		if got := a.visitor(data, ticket); got != netip.MustParseAddrPort(c.source) {
			t.Errorf("version %d: presented as %v, not as %s", c.version, got, c.source)
		}
		receives(t, data, string(hello))
		// Both ways, and to the end.
		programs.Got(data.Write([]byte("answer")))(t)
		data.Close()
		if got, err := io.ReadAll(visitor); err != nil || string(got) != "answer" {
			t.Errorf("the visitor got %q, %v", got, err)
		}
	}
	second := dialFrom(t, "127.0.0.2", addr)
	_, _ = second.Write(append(header(t, 1, "198.51.100.7:4720", "203.0.113.1:443"), hello...))
	answered(t, "a second visitor of one source", second, internalError)
	for _, visitor := range visitors {
		visitor.Close()
	}
	programs.Eventually(t, "everybody has left", func() bool { return r.Stats().Visitors == 0 })

	conn := dialFrom(t, "127.0.0.2", addr)
	programs.Got(conn.Write(header(t, 2, "198.51.100.9:4715", "203.0.113.1:443")))(t)
	secure := tls.Client(conn, &tls.Config{ServerName: testAuthHost, InsecureSkipVerify: true})
	programs.Got(io.WriteString(secure, "GET / HTTP/1.1\r\nHost: "+testAuthHost+"\r\nConnection: close\r\n\r\n"))(t)
	if got := <-seen; got != "198.51.100.9:4715" {
		t.Errorf("the control plane sees %s", got)
	}
}

// TestAnnouncedAgent: computers may come through a balancer, too.
func TestAnnouncedAgent(t *testing.T) {
	t.Parallel()
	r, addr := serveRelay(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{balancer} }, nil)
	conn := dialFrom(t, "127.0.0.2", addr)
	programs.Got(conn.Write(header(t, 1, "198.51.100.9:4715", "203.0.113.1:443")))(t)
	connectAgentOver(t, conn, addr, "maya")
	programs.Eventually(t, "the tunnel stands", func() bool { return r.Stats().Sessions == 1 })
}

// Weakness: a PROXY header says where a connection comes from, and anybody can
// write one. Attack: a visitor sends a header of either version before the hello,
// to be counted under, and presented as, another address. Checked: from anybody
// but the named balancers it is bytes that make no sense, and the connection is
// closed; and without any balancer named, from everybody.
func TestForgedAnnouncements(t *testing.T) {
	t.Parallel()
	for name, trusted := range map[string][]netip.Prefix{"a balancer is trusted": {balancer}, "nobody is": nil} {
		r, addr := serveRelay(t, func(c *Config) { c.TrustedProxies = trusted }, nil)
		connectAgent(t, addr, "maya")
		hello := programs.ClientHello(t, &tls.Config{ServerName: "notes.maya.localhost"})
		for _, version := range []byte{1, 2} {
			visitor := dial(t, addr) // from 127.0.0.1
			_, _ = visitor.Write(append(header(t, version, "198.51.100.7:4711", "203.0.113.1:443"), hello...))
			got, err := io.ReadAll(visitor)
			if len(got) != 0 && got[0] != 'H' { // version 1 reads like plain HTTP
				t.Errorf("%s, version %d: answered with %q, %v", name, version, got, err)
			}
		}
		if n := r.Stats().Malformed; n != 2 {
			t.Errorf("%s: %d were refused as malformed", name, n)
		}
		if n := r.Stats().Visits; n != 0 {
			t.Errorf("%s: %d visits came about", name, n)
		}
	}
}

// TestMalformedAnnouncements: what a trusted balancer sends without a header, or
// with a broken one, is closed and never taken for a visitor.
func TestMalformedAnnouncements(t *testing.T) {
	t.Parallel()
	r, addr := serveRelay(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{balancer} }, nil)
	connectAgent(t, addr, "maya")
	hello := programs.ClientHello(t, &tls.Config{ServerName: "notes.maya.localhost"})
	v2 := header(t, 2, "198.51.100.7:4711", "203.0.113.1:443")
	udp, short, long := bytes.Clone(v2), bytes.Clone(v2), bytes.Clone(v2)
	udp[13] = 0x12
	short[15] = 11
	long[14] = 0xff
	cases := map[string][]byte{
		"no header":            nil,
		"no line end":          []byte("PROXY TCP4 " + strings.Repeat("1", 200)),
		"an address is a name": []byte("PROXY TCP4 localhost 203.0.113.1 4711 443\r\n"),
		"families mixed":       []byte("PROXY TCP4 2001:db8::1 203.0.113.1 4711 443\r\n"),
		"a port too large":     []byte("PROXY TCP4 198.51.100.7 203.0.113.1 65536 443\r\n"),
		"a port with a sign":   []byte("PROXY TCP4 198.51.100.7 203.0.113.1 +1 443\r\n"),
		"two spaces":           []byte("PROXY TCP4  198.51.100.7 203.0.113.1 4711 443\r\n"),
		"version 2 of UDP":     udp,
		"too short":            short,
		"too long":             long,
	}
	for name, head := range cases {
		conn := dialFrom(t, "127.0.0.2", addr)
		_, _ = conn.Write(append(bytes.Clone(head), hello...))
		if got, err := io.ReadAll(conn); len(got) != 0 {
			t.Errorf("%s: answered with %q, %v", name, got, err)
		}
	}
	programs.Eventually(t, "all are counted", func() bool { return r.Stats().Malformed == uint64(len(cases)) })
	if n := r.Stats().Visits; n != 0 {
		t.Errorf("%d visits came about", n)
	}

	// A balancer that looks whether the port is open is no fault.
	probe := dialFrom(t, "127.0.0.2", addr)
	_ = probe.CloseWrite()
	_, _ = io.ReadAll(probe)
	probe = dialFrom(t, "127.0.0.2", addr)
	_ = probe.SetLinger(0) // as haproxy's checks do
	programs.Eventually(t, "the probe is read", func() bool { return atDoor(r) == 1 })
	_ = probe.Close()
	programs.Eventually(t, "the probe is over", func() bool { return atDoor(r) == 0 })
	if n := r.Stats().Malformed; n != uint64(len(cases)) {
		t.Error("a probe was counted as malformed")
	}
	programs.Eventually(t, "nothing is left among the undecided", func() bool { return atDoor(r) == 0 })
}

// signature is what version 2 begins with.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

// TestBalancersOwnConnections: what a balancer says for itself is counted under
// its own address.
func TestBalancersOwnConnections(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"version 1": "PROXY UNKNOWN\r\n", "version 1, with more": "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
		"version 2, LOCAL":       signature + "\x20\x00\x00\x00",
		"version 2, unspecified": signature + "\x21\x00\x00\x03abc",
	} {
		source, destination, err := readHeader(strings.NewReader(head + "rest"))
		if err != nil || source.IsValid() || destination.IsValid() {
			t.Errorf("%s: %v %v %v", name, source, destination, err)
		}
	}
}

// FuzzAnnouncement: a header is read to its end and no further, and means what
// another implementation takes it for.
func FuzzAnnouncement(f *testing.F) {
	for _, version := range []byte{1, 2} {
		f.Add(header(f, version, "198.51.100.7:4711", "203.0.113.1:443"))
		f.Add(header(f, version, "[2001:db8::7]:4711", "[2001:db8::1]:443"))
	}
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n"))
	f.Add([]byte(signature + "\x20\x00\x00\x00"))
	f.Add([]byte(signature + "\x21\x11\x00\x0f\xc6\x33\x64\x07\xcb\x00\x71\x01\x12\x67\x01\xbb\x04\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		source, destination, err := readHeader(r)
		if err != nil {
			if !errors.Is(err, errAnnouncement) && err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		rest := b[len(b)-r.Len():]
		theirs := bufio.NewReaderSize(bytes.NewReader(b), 1<<17)
		h, err := proxyproto.Read(theirs)
		if err != nil {
			if source.IsValid() {
				t.Fatalf("%q was read as %v, and not by another implementation: %v", b, source, err)
			}
			return
		}
		if left, _ := io.ReadAll(theirs); !bytes.Equal(left, rest) {
			t.Fatalf("%d bytes are left, and %d by another implementation", len(rest), len(left))
		}
		if !source.IsValid() {
			return
		}
		theirSource, theirDestination, ok := h.TCPAddrs()
		if !ok || addrPort(theirSource) != source || addrPort(theirDestination) != destination {
			t.Fatalf("%q: %v to %v, and %v to %v by another implementation", b, source, destination, theirSource, theirDestination)
		}
	})
}
