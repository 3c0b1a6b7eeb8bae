package tunnel_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/control/controlapi/tunnelwire"
	"porchlight/test/programs"
)

// fakeRelay speaks the relay's side by hand, so that it can also lie.
type fakeRelay struct {
	t        *testing.T
	listener net.Listener
	config   *tls.Config
	key      *tunnelwire.HeaderKey
}

// startFakeRelay welcomes one agent and returns once it has.
func startFakeRelay(t *testing.T, change ...func(*tunnel.Config)) (f *fakeRelay, tn *tunnel.Tunnel, control *tls.Conn) {
	t.Helper()
	l := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	f = &fakeRelay{t: t, listener: l, config: &tls.Config{
		Certificates: issued(authHost),
		NextProtos:   []string{controlapi.TunnelALPN},
	}}
	cfg := toRelays(l.Addr().String())
	for _, c := range change {
		c(&cfg)
	}
	tn = programs.Got(tunnel.New(cfg))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = tn.Run(ctx) })
	t.Cleanup(func() { cancel(); _ = l.Close(); wg.Wait() })

	control = tls.Server(f.accept(), f.config)
	t.Cleanup(func() { _ = control.Close() })
	hello, err := tunnelwire.ReadFrame(control)
	if err != nil || hello.Type != tunnelwire.Hello || hello.Credential != credential {
		t.Fatalf("%v, %v", hello.Type, err)
	}
	state := control.ConnectionState()
	material := programs.Got(state.ExportKeyingMaterial(tunnelwire.ExporterLabel, nil, tunnelwire.KeySize))(t)
	f.key = tunnelwire.NewHeaderKey(material)
	programs.Must(t, tunnelwire.WriteFrame(control, tunnelwire.Frame{Type: tunnelwire.Welcome}))
	return f, tn, control
}

func (f *fakeRelay) accept() net.Conn {
	f.t.Helper()
	_ = f.listener.(*net.TCPListener).SetDeadline(time.Now().Add(wait))
	conn := programs.Got(f.listener.Accept())(f.t)
	_ = conn.SetDeadline(time.Now().Add(wait))
	f.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// data asks for a data connection and returns it with its ticket.
func (f *fakeRelay) data(control *tls.Conn) (net.Conn, tunnelwire.Ticket) {
	f.t.Helper()
	ticket := tunnelwire.NewTicket()
	programs.Must(f.t, tunnelwire.WriteFrame(control, tunnelwire.Frame{Type: tunnelwire.Open, Tickets: []tunnelwire.Ticket{ticket}}))
	conn := f.accept()
	var b [tunnelwire.PreambleSize]byte
	programs.Got(io.ReadFull(conn, b[:]))(f.t)
	got, more, err := tunnelwire.ParsePreamble(b[:])
	if err != nil || more != 0 || !got.Equal(ticket) {
		f.t.Fatalf("another ticket, %d more, %v", more, err)
	}
	return conn, ticket
}

// Weakness: whoever sits between agent and relay, or dials in the relay's place,
// could present visitors with addresses of its choosing, or feed the agent bytes
// as if a relay had let them in. Attack: every header but the right one.
// Checked: the connection is closed and named in the log, and the first visitor
// passed up is the honest one that comes last.
func TestForgedHeaderIsRefused(t *testing.T) {
	t.Parallel()
	log := &syncBuffer{}
	f, tn, control := startFakeRelay(t, func(c *tunnel.Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	accepted := make(chan net.Conn, 1)
	go func() { c, _ := tn.Listener().Accept(); accepted <- c }()
	source, destination := netip.MustParseAddrPort("203.0.113.9:51234"), netip.MustParseAddrPort("198.51.100.1:443")
	right := func(ticket tunnelwire.Ticket) []byte {
		return f.key.AppendHeader(nil, ticket, source, destination)
	}
	_, other := f.data(control)
	forgeries := map[string]func(tunnelwire.Ticket) []byte{
		"another key": func(k tunnelwire.Ticket) []byte {
			return tunnelwire.NewHeaderKey(make([]byte, tunnelwire.KeySize)).AppendHeader(nil, k, source, destination)
		},
		"the header of another ticket": func(tunnelwire.Ticket) []byte { return right(other) },
		"another address":              func(k tunnelwire.Ticket) []byte { b := right(k); b[16]++; return b },
		"no code at all": func(tunnelwire.Ticket) []byte {
			return []byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x09\xc6\x33\x64\x01\xc8\x22\x01\xbb")
		},
		"a local connection": func(k tunnelwire.Ticket) []byte { b := right(k); b[12] = 0x20; return b },
		"version 1":          func(tunnelwire.Ticket) []byte { return []byte("PROXY TCP4 203.0.113.9 198.51.100.1 51234 443\r\n") },
		"a visitor's bytes":  func(tunnelwire.Ticket) []byte { return []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") },
	}
	want := 0
	for name, forge := range forgeries {
		conn, ticket := f.data(control)
		programs.Got(conn.Write(append(forge(ticket), "GET / HTTP/1.1\r\n\r\n"...)))(t)
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: the agent answered", name)
		}
		want++
		programs.Eventually(t, name+" is in the log", func() bool { return strings.Count(log.String(), "did not come from our relay") == want })
	}
	// The same, honestly, and in two pieces.
	conn, ticket := f.data(control)
	header := right(ticket)
	for _, piece := range [][]byte{header[:20], append(header[20:len(header):len(header)], "hel"...), []byte("lo")} {
		programs.Got(conn.Write(piece))(t)
	}
	visitor := <-accepted
	defer visitor.Close()
	got := make([]byte, 5)
	if _, err := io.ReadFull(visitor, got); err != nil || string(got) != "hello" || visitor.RemoteAddr().String() != source.String() {
		t.Fatalf("%q from %v, %v", got, visitor.RemoteAddr(), err)
	}
}

// Weakness: a relay's certificate that anybody's authority signed, or one for
// another name. Checked: the agent does not give its credential away.
func TestRelayMustProveItself(t *testing.T) {
	t.Parallel()
	l := programs.Got(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: issued("another.localhost"),
		NextProtos:   []string{controlapi.TunnelALPN},
	}))(t)
	defer l.Close()
	tn, _ := tunnel.New(toRelays(l.Addr().String()))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = tn.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	conn := programs.Got(l.Accept())(t)
	defer conn.Close()
	if f, err := tunnelwire.ReadFrame(conn); err == nil {
		t.Fatalf("the agent sent %q to a relay it cannot know", f.Type)
	}
}

// Late data connections on a busy machine are no reason to run visits inside TLS;
// data connections of which none arrives are.
func TestMissingTickets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrived []int
		secure  bool
	}{"others have arrived": {arrived: []int{1}}, "none has": {[]int{0}, true}, "they were only late": {arrived: []int{0, 1}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, control := startFakeRelay(t)
			var frames []tunnelwire.Frame
			for _, arrived := range c.arrived {
				missing := tunnelwire.Frame{Type: tunnelwire.Missing, Arrived: arrived}
				for range 4 {
					missing.Tickets = append(missing.Tickets, tunnelwire.NewTicket())
				}
				frames = append(frames, missing)
			}
			open := tunnelwire.Frame{Type: tunnelwire.Open, Tickets: []tunnelwire.Ticket{tunnelwire.NewTicket()}}
			for _, frame := range append(frames, open) {
				programs.Must(t, tunnelwire.WriteFrame(control, frame))
			}
			var first [1]byte
			programs.Got(io.ReadFull(f.accept(), first[:]))(t)
			if secure := first[0] != tunnelwire.Magic[0]; secure != c.secure {
				t.Errorf("the next data connection runs inside TLS: %v, want %v", secure, c.secure)
			}
		})
	}
}

// Weakness: an agent opened a data connection for every ticket it was sent, so a
// relay gone bad could use up the computer's memory and files. Attack: tickets
// without end, whose connections never come to anything. Checked: beyond a bound
// they are given back.
func TestTicketsAreBounded(t *testing.T) {
	t.Parallel()
	for files, bound := range map[int]int{1 << 20: 4096, 20_000: 625, 1024: 32, 1: 8} {
		t.Run(fmt.Sprint(files, " files"), func(t *testing.T) {
			t.Parallel()
			ticketsAreBounded(t, files, bound)
		})
	}
}

func ticketsAreBounded(t *testing.T, files, bound int) {
	var dialled atomic.Bool
	_, _, control := startFakeRelay(t, func(c *tunnel.Config) {
		c.Files = files
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dialled.Swap(true) { // the control connection is the first
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	const frame = tunnelwire.MaxTickets
	go func() {
		open := tunnelwire.Frame{Type: tunnelwire.Open}
		for range frame {
			open.Tickets = append(open.Tickets, tunnelwire.NewTicket())
		}
		for range bound/frame + 1 {
			if tunnelwire.WriteFrame(control, open) != nil {
				return
			}
		}
	}()
	for {
		f, err := tunnelwire.ReadFrame(control)
		if err != nil {
			t.Fatal("no ticket was given back: ", err)
		}
		if f.Type == tunnelwire.Failed {
			if want := frame - bound%frame; len(f.Tickets) != want {
				t.Errorf("%d were given back, want the last %d", len(f.Tickets), want)
			}
			return
		}
	}
}
