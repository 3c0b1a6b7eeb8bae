package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

// secure opens a visitor's connection. Its key exchange is X25519 unless the
// configuration says otherwise: nginx knows no hybrid one. Version and cipher are
// the same whoever answers.
func secure(ctx context.Context, c contender, conf *tls.Config) (*tls.Conn, error) {
	conf.ServerName, conf.InsecureSkipVerify, conf.Certificates = host, true, c.device
	if conf.CurvePreferences == nil {
		conf.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	// Visitors come from many addresses: each has limits of its own, and ports.
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+visitors.Add(1)%200))}
	dialer := tls.Dialer{Config: conf, NetDialer: &net.Dialer{LocalAddr: from, KeepAlive: -1}}
	conn, err := dialer.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	secured := conn.(*tls.Conn)
	if is := secured.ConnectionState(); is.Version != tls.VersionTLS13 || is.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		conn.Close()
		return nil, fmt.Errorf("TLS %x with cipher %x is not what the others speak", is.Version, is.CipherSuite)
	}
	return secured, nil
}

var visitors atomic.Uint32

func http1() *tls.Config { return &tls.Config{NextProtos: []string{"http/1.1"}} }

func (c contender) request(method, path string, length int) []byte {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s: %s\r\n", method, path, host, c.header[0], c.header[1])
	if length > 0 {
		head += fmt.Sprintf("Content-Length: %d\r\n", length)
	}
	return []byte(head + "\r\n")
}

// ask sends a request and reads the answer's body to its end.
func ask(conn net.Conn, r *bufio.Reader, request []byte) (n int64, err error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	return answer(r)
}

func answer(r *bufio.Reader) (n int64, err error) {
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, errors.New(res.Status)
	}
	return io.Copy(io.Discard, res.Body)
}

// paced sends HTTP/1.1 requests at fixed times, spread over the connections, and
// returns how long the answers took. A request that is late because the one before
// it on its connection was slow counts from when it was due.
func paced(ctx context.Context, st *stage, c contender) ([]reading, error) {
	total := int(float64(st.rate) * st.span.Seconds())
	gap := time.Second / time.Duration(st.rate)
	var (
		mu   sync.Mutex
		took []time.Duration
	)
	g, ctx := errgroup.WithContext(ctx)
	begin := time.Now().Add(2 * st.settle) // every connection is open by then
	for i := range st.connections {
		g.Go(func() error {
			conn, err := secure(ctx, c, http1())
			if err != nil {
				return err
			}
			defer conn.Close()
			r, request := bufio.NewReader(conn), c.request("GET", "/", 0)
			if _, err := ask(conn, r, request); err != nil {
				return err
			}
			var mine []time.Duration
			for n := i; n < total && ctx.Err() == nil; n += st.connections {
				start := begin.Add(time.Duration(n) * gap)
				if wait := time.Until(start); wait > 0 {
					time.Sleep(wait)
					start = time.Now() // that this process woke late is not the proxy's fault
				}
				if _, err := ask(conn, r, request); err != nil {
					return err
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return quantiles(took)
}

// oneAtATime has each connection ask again as soon as it is answered, and counts the processor
// time of the contender alone.
func oneAtATime(ctx context.Context, st *stage, c contender) ([]reading, error) {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	g, asking := errgroup.WithContext(asking)
	for range st.connections {
		g.Go(func() error {
			conn, err := secure(ctx, c, http1())
			if err != nil {
				return err
			}
			defer conn.Close()
			r, request := bufio.NewReader(conn), c.request("GET", "/", 0)
			for asking.Err() == nil {
				if _, err := ask(conn, r, request); err != nil {
					return err
				}
			}
			return nil
		})
	}
	time.Sleep(2 * st.settle) // every connection is open by then
	first, err := st.measure(c)
	time.Sleep(st.span)
	last, err2 := st.measure(c)
	stop()
	if err := errors.Join(g.Wait(), err, err2); err != nil {
		return nil, err
	}
	n := float64(last.answered - first.answered)
	if n <= 0 {
		return nil, errNothing
	}
	return []reading{{cpuRequest, micro(last.cpu-first.cpu) / n}, {perSecond, n / last.when.Sub(first.when).Seconds()}}, nil
}

func quantiles(took []time.Duration) ([]reading, error) {
	if len(took) == 0 {
		return nil, errors.New("nothing was timed")
	}
	slices.Sort(took)
	return []reading{{p50, micro(took[len(took)/2]) / 1e3}, {p99, micro(took[len(took)*99/100]) / 1e3}}, nil
}

// handshake is one way of beginning TLS.
type handshake int

const (
	fullHandshake handshake = iota
	resumedHandshake
	hybridHandshake // full, with X25519MLKEM768 where the server knows it
)

// config is a visitor's for one kind of handshake.
func (kind handshake) config(ctx context.Context, c contender) (*tls.Config, error) {
	conf := http1()
	switch kind {
	case hybridHandshake:
		conf.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.X25519}
	case resumedHandshake:
		// A ticket comes after the handshake; reading an answer takes it in.
		conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return conf, visitOnce(ctx, c, conf)
	}
	return conf, nil
}

func visitOnce(ctx context.Context, c contender, conf *tls.Config) error {
	conn, err := secure(ctx, c, conf)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = ask(conn, bufio.NewReader(conn), c.request("GET", "/", 0))
	return err
}

// handshakes measures processor time for one.
func handshakes(kind handshake) func(context.Context, *stage, contender) ([]reading, error) {
	return func(ctx context.Context, st *stage, c contender) ([]reading, error) {
		const workers = 8
		confs := make([]*tls.Config, workers)
		for i := range confs {
			conf, err := kind.config(ctx, c)
			if err != nil {
				return nil, err
			}
			confs[i] = conf
		}
		before, err := c.cpu()
		if err != nil {
			return nil, err
		}
		g, group := errgroup.WithContext(ctx) // which ends with Wait
		for i := range workers {
			g.Go(func() error { return shakeHands(group, c, confs[i], st.handshakes/workers, kind == resumedHandshake) })
		}
		// One request after the last: when it is answered, so are they.
		if err := g.Wait(); err != nil {
			return nil, err
		}
		if err := visitOnce(ctx, c, http1()); err != nil {
			return nil, err
		}
		after, err := c.cpu()
		return []reading{{cpuHandshake, micro(after-before) / float64(st.handshakes/workers*workers)}}, err
	}
}

func shakeHands(ctx context.Context, c contender, conf *tls.Config, times int, resume bool) error {
	for range times {
		conn, err := secure(ctx, c, conf)
		if err != nil {
			return err
		}
		resumed := conn.ConnectionState().DidResume
		if err := conn.Close(); err != nil {
			return err
		}
		if resumed != resume {
			return fmt.Errorf("a handshake was resumed: %v", resumed)
		}
	}
	return nil
}

// download fetches st.bulk bytes some times over one connection, and upload sends
// them: processor time for 10⁹ bytes, and megabytes a second.
func download(ctx context.Context, st *stage, c contender) ([]reading, error) {
	return inBulk(ctx, st, c, func(conn net.Conn, r *bufio.Reader) error {
		n, err := ask(conn, r, c.request("GET", fmt.Sprint("/bulk/", st.bulk), 0))
		if err == nil && n != st.bulk {
			err = fmt.Errorf("%d bytes came of %d", n, st.bulk)
		}
		return err
	})
}

func upload(ctx context.Context, st *stage, c contender) ([]reading, error) {
	return inBulk(ctx, st, c, func(conn net.Conn, r *bufio.Reader) error {
		if _, err := conn.Write(c.request("POST", "/", int(st.bulk))); err != nil {
			return err
		}
		for left := st.bulk; left > 0; left -= int64(len(chunk)) {
			if _, err := conn.Write(chunk[:min(left, int64(len(chunk)))]); err != nil {
				return err
			}
		}
		_, err := answer(r)
		return err
	})
}

func inBulk(ctx context.Context, st *stage, c contender, once func(net.Conn, *bufio.Reader) error) ([]reading, error) {
	const times = 4
	conn, err := secure(ctx, c, http1())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	if _, err := ask(conn, r, c.request("GET", "/", 0)); err != nil { // the handshake is over
		return nil, err
	}
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for range times {
		if err := once(conn, r); err != nil {
			return nil, err
		}
	}
	took := time.Since(began).Seconds()
	after, err := c.cpu()
	gb := float64(times*st.bulk) / 1e9
	return []reading{{cpuGB, (after - before).Seconds() / gb}, {mbPerSecond, gb * 1e3 / took}}, err
}

// idleMemory is what connections at rest take, a thousand of them, each of which
// has asked once.
func idleMemory(ctx context.Context, st *stage, c contender) ([]reading, error) {
	for range 100 { // the program itself gets into memory
		if err := visitOnce(ctx, c, http1()); err != nil {
			return nil, err
		}
	}
	before, err := c.resident()
	if err != nil {
		return nil, err
	}
	conns, err := st.rest(ctx, c, st.idle)
	defer closeAll(conns)
	if err != nil {
		return nil, err
	}
	after, err := c.resident()
	return []reading{{memory, (after - before) / 1e6 / float64(st.idle) * 1000}}, err
}

// rest opens n connections, each of which asks once and then says nothing.
func (st *stage) rest(ctx context.Context, c contender, n int) ([]net.Conn, error) {
	return openMany(ctx, n, func(ctx context.Context, _ int) (net.Conn, error) { return c.askOnce(ctx) })
}

// askOnce opens a connection and asks once.
func (c contender) askOnce(ctx context.Context) (net.Conn, error) {
	conn, err := secure(ctx, c, http1())
	if err != nil {
		return nil, err
	}
	if _, err := ask(conn, bufio.NewReaderSize(conn, 512), c.request("GET", "/", 0)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// openMany opens n connections, some at a time, and returns with an error what was opened
// before it.
func openMany(ctx context.Context, n int, open func(ctx context.Context, i int) (net.Conn, error)) ([]net.Conn, error) {
	const workers = 8
	conns := make([]net.Conn, n) // nil where none was
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for i := w; i < n; i += workers {
				conn, err := open(ctx, i)
				if err != nil {
					return fmt.Errorf("visitor %d: %w", i, err)
				}
				conns[i] = conn
			}
			return nil
		})
	}
	return conns, g.Wait()
}

func closeAll(conns []net.Conn) {
	for _, conn := range conns {
		if conn != nil {
			conn.Close()
		}
	}
}

// messages sends small ones over WebSockets, each as soon as the last came back.
func messages(ctx context.Context, st *stage, c contender) ([]reading, error) {
	talks := make([]*websocket.Conn, 0, st.connections)
	defer func() {
		for _, talk := range talks {
			_ = talk.CloseNow() // all was said
		}
	}()
	for range st.connections {
		talk, err := c.webSocket(ctx)
		if err != nil {
			return nil, err
		}
		talks = append(talks, talk)
	}
	var (
		over atomic.Bool
		said atomic.Int64
	)
	g, group := errgroup.WithContext(ctx)
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, talk := range talks {
		g.Go(func() error {
			for !over.Load() {
				if err := talk.Write(group, websocket.MessageBinary, small); err != nil {
					return err
				}
				if _, _, err := talk.Read(group); err != nil {
					return err
				}
				said.Add(1)
			}
			return nil
		})
	}
	for span := st.span; ; span *= 2 { // longer where not one came back
		time.Sleep(span)
		if said.Load() > 0 || span > 10*time.Second {
			break
		}
	}
	n, took := float64(said.Load()), time.Since(began).Seconds()
	after, err := c.cpu()
	over.Store(true)
	if err := errors.Join(err, g.Wait()); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("no message came back")
	}
	return []reading{{cpuMessage, micro(after-before) / n}, {perSecond, n / took}}, nil
}

func (c contender) webSocket(ctx context.Context) (*websocket.Conn, error) {
	client := &http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return secure(ctx, c, http1()) },
	}}
	header := http.Header{c.header[0]: {c.header[1]}, "Origin": {"https://" + host}}
	talk, _, err := websocket.Dial(ctx, "wss://"+host+"/ws", &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	return talk, err
}
