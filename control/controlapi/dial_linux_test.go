package controlapi

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"porchlight/test/programs"
)

// resolver is a name server of its own that knows these addresses of every name.
func resolver(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	conn := programs.Got(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		for _, addr := range addrs {
			if kind := q.Question[0]; kind.Qtype == dns.TypeA {
				answer.Answer = append(answer.Answer, &dns.A{Hdr: dns.RR_Header{Name: kind.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(addr)})
			}
		}
		_ = w.WriteMsg(answer) // who asks would notice
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.ActivateAndServe() })
	t.Cleanup(func() { _ = conn.Close(); serving.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// silentAt has nobody answer at an address: its listener takes no more connections.
func silentAt(t *testing.T, ip string, port int) {
	t.Helper()
	fd := programs.Got(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))(t)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	at := &syscall.SockaddrInet4{Port: port, Addr: netip.MustParseAddr(ip).As4()}
	programs.Must(t, syscall.Bind(fd, at))
	programs.Must(t, syscall.Listen(fd, 0))
	for range 16 {
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(port)).String(), 200*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the listener takes connections for ever")
}

// Of a name with several addresses, of one family too, nobody waits for one that is
// silent: the next is tried beside it. There is no end to the wait here but the test's,
// because with one each address would get its share of it.
func TestAddressesRace(t *testing.T) {
	t.Parallel()
	port := programs.FreePort(t) // at the other address, too
	second := programs.Got(net.Listen("tcp", net.JoinHostPort("127.0.0.3", strconv.Itoa(port))))(t)
	defer second.Close()
	silentAt(t, "127.0.0.2", port)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer time.AfterFunc(30*time.Second, cancel).Stop()
	dial := DialWith(&net.Dialer{Resolver: resolver(t, "127.0.0.2", "127.0.0.3")})
	conn := programs.Got(dial(ctx, "tcp", net.JoinHostPort("relay.example.net", strconv.Itoa(port))))(t)
	defer conn.Close()
	if got := conn.RemoteAddr().String(); got != second.Addr().String() {
		t.Errorf("connected to %s", got)
	}
}

// Who names many addresses has few of them tried, and what the first said is the error.
func TestFewAddressesAreTried(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 30 {
		names = append(names, netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i)}).String())
	}
	var mu sync.Mutex
	var tried []string // guarded by mu
	dial := DialWith(&net.Dialer{Resolver: resolver(t, names...), Control: func(_, address string, _ syscall.RawConn) error {
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, address)
		return syscall.EHOSTUNREACH
	}})
	_, err := dial(t.Context(), "tcp", "relay.example.net:443")
	mu.Lock()
	defer mu.Unlock()
	if len(tried) != triedMost || tried[0] != "127.0.1.1:443" || err == nil || !slices.IsSorted(tried) {
		t.Errorf("tried %v, and then %v", tried, err)
	}
}

// The two families take turns, from that of the best address on.
func TestFamiliesTakeTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, want []string }{
		{[]string{"::1", "::2", "::3", "10.0.0.1", "10.0.0.2"}, []string{"::1", "10.0.0.1", "::2", "10.0.0.2", "::3"}},
		{[]string{"10.0.0.1", "::1", "::2"}, []string{"10.0.0.1", "::1", "::2"}},
		{[]string{"10.0.0.1"}, []string{"10.0.0.1"}},
	} {
		var from, want []netip.Addr
		for _, a := range c.from {
			from = append(from, netip.MustParseAddr(a))
		}
		for _, a := range c.want {
			want = append(want, netip.MustParseAddr(a))
		}
		if got := inTurns(from); !slices.Equal(got, want) {
			t.Errorf("of %v: %v", from, got)
		}
	}
}

// A connection that comes too late is closed, and who gives up waits for nobody.
func TestRaceLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	late, tooLate := net.Pipe()
	defer late.Close()
	won := make(chan struct{})
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}
	conn, err := race(t.Context(), addrs, func(_ context.Context, addr netip.Addr) (net.Conn, error) {
		if addr == addrs[1] {
			return late, nil
		}
		<-won
		return tooLate, nil
	})
	close(won)
	if err != nil || conn != late {
		t.Fatalf("%v, %v", conn, err)
	}
	if _, err := late.Read(make([]byte, 1)); err == nil {
		t.Error("the other connection stays open")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := race(ctx, addrs, func(ctx context.Context, _ netip.Addr) (net.Conn, error) { return nil, ctx.Err() }); err == nil {
		t.Error("connected after the end")
	}
}
