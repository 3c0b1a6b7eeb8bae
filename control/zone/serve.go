package zone

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"porchlight/internal/bounds"
)

const (
	maxQuestion = 4096 // bytes of a question that are read; a longer one is cut, and thus none

	maxConns        = 256 // by TCP, at a time
	maxConnsNetwork = 16  // of them from one network
	maxQuestions    = 64  // on one connection
	// maxByTCPASecond are the questions of one network, each connection counted as one more. Who
	// asks more often is hung up on.
	maxByTCPASecond = 100
	maxWaiting      = 64 // answers by UDP that are looked up
	idle            = 5 * time.Second
)

// Server listens for questions, by UDP and TCP at one port.
type Server struct {
	zone *Zone
	udp  *net.UDPConn
	tcp  *net.TCPListener
	log  *slog.Logger

	askers  *bounds.Buckets[netip.Prefix] // by TCP
	waiting chan struct{}                 // one of each answer by UDP that Config.Records are asked for

	mu    sync.Mutex
	conns map[netip.Prefix]int // by network, how many are open
	all   int
}

// Listen takes an address of the form host:port.
func Listen(address string, z *Zone, log *slog.Logger) (*Server, error) {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	at := tcp.Addr().(*net.TCPAddr)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port, Zone: at.Zone})
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	return &Server{
		zone: z, udp: udp, tcp: tcp.(*net.TCPListener), log: log, waiting: make(chan struct{}, maxWaiting), conns: map[netip.Prefix]int{},
		askers: bounds.NewBuckets[netip.Prefix](bounds.Bucket{Size: maxByTCPASecond, Refill: time.Second / maxByTCPASecond}, networks),
	}, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.tcp.Addr().String() }

// Close stops listening.
func (s *Server) Close() error { return errors.Join(s.tcp.Close(), s.udp.Close()) }

// Run answers until ctx ends, and stops listening then.
func (s *Server) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { s.answerUDP(ctx, &all) })
	}
	all.Go(func() { s.answerTCP(ctx, &all) })
	<-ctx.Done()
	_ = s.Close() // nothing is lost by it
	all.Wait()
	return nil
}

// answerUDP answers one question after another, for each takes microseconds. Those that have
// to wait do so beside it, as many as there is room for.
func (s *Server) answerUDP(ctx context.Context, all *sync.WaitGroup) {
	packet := make([]byte, maxQuestion)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // what was sent before could not be delivered
		}
		q, out := s.zone.read(packet[:n], from.Addr().Unmap(), overUDP)
		if q != nil && s.zone.waits(q) {
			select {
			case s.waiting <- struct{}{}:
				all.Go(func() {
					defer func() { <-s.waiting }()
					s.sendUDP(s.zone.packedReply(ctx, q), from)
				})
			default: // a resolver asks again
			}
			continue
		}
		if q != nil {
			out = s.zone.packedReply(ctx, q)
		}
		s.sendUDP(out, from)
	}
}

func (s *Server) sendUDP(out []byte, to netip.AddrPort) {
	if out != nil {
		_, _ = s.udp.WriteToUDPAddrPort(out, to) // a resolver asks again
	}
}

func (s *Server) answerTCP(ctx context.Context, all *sync.WaitGroup) {
	for {
		conn, err := s.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("a connection for DNS could not be taken", "err", err)
			select { // out of files, mostly
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		network := bounds.Network(from, 24, 56)
		if s.tooOften(network) || !s.enter(network) {
			_ = conn.Close()
			continue
		}
		all.Go(func() {
			defer s.leave(network)
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			s.converse(ctx, conn, from, network)
		})
	}
}

func (s *Server) tooOften(network netip.Prefix) bool {
	return s.askers.Take(s.zone.cfg.Now(), network) > 0
}

func (s *Server) enter(network netip.Prefix) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxConns || s.conns[network] >= maxConnsNetwork {
		return false
	}
	s.all++
	s.conns[network]++
	return true
}

func (s *Server) leave(network netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.conns[network]--; s.conns[network] == 0 {
		delete(s.conns, network)
	}
}

// converse answers questions that come with their length before them (RFC 7766), each in one
// time limit from its first byte to the last of its answer.
func (s *Server) converse(ctx context.Context, conn net.Conn, from netip.Addr, network netip.Prefix) {
	var length [2]byte
	for range maxQuestions {
		if conn.SetDeadline(time.Now().Add(idle)) != nil {
			return
		}
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		size := int(binary.BigEndian.Uint16(length[:]))
		if size > maxQuestion {
			return
		}
		packet := make([]byte, size)
		if _, err := io.ReadFull(conn, packet); err != nil || s.tooOften(network) {
			return
		}
		out := s.zone.answer(ctx, packet, from, overTCP)
		if out == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}
