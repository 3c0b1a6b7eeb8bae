package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// saturate has every connection ask again as soon as it is answered, one request
// at a time, and returns CPU time for a request and requests a second.
func saturate(ctx context.Context, s settings, c contender, http2 bool) (perRequest time.Duration, rate float64, err error) {
	args := []string{
		"--connect-to=" + c.addr, "-D", strconv.FormatFloat(s.span.Seconds(), 'f', -1, 64),
		"-c", strconv.Itoa(s.connections), "-m", "1", "-H", c.header[0] + ": " + c.header[1],
	}
	if !http2 {
		args = append(args, "--h1")
	}
	before, err := c.cpu()
	if err != nil {
		return 0, 0, err
	}
	out, err := exec.CommandContext(ctx, "h2load", append(args, "https://"+host+"/")...).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("h2load: %w: %s", err, bytes.TrimSpace(out))
	}
	after, err := c.cpu()
	if err != nil {
		return 0, 0, err
	}
	done, err := succeeded(out)
	if err != nil {
		return 0, 0, err
	}
	return (after - before) / time.Duration(done), float64(done) / s.span.Seconds(), nil
}

var (
	requestsLine = regexp.MustCompile(`requests: (\d+) total.* (\d+) succeeded, (\d+) failed, (\d+) errored`)
	statusLine   = regexp.MustCompile(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
)

// succeeded reads how many requests h2load had answered with 2xx; any other
// answer is an error.
func succeeded(report []byte) (int, error) {
	requests, status := requestsLine.FindSubmatch(report), statusLine.FindSubmatch(report)
	if requests == nil || status == nil {
		return 0, fmt.Errorf("h2load said something else than expected: %s", report)
	}
	for _, bad := range [][]byte{requests[3], requests[4], status[2], status[3], status[4]} {
		if string(bad) != "0" {
			return 0, fmt.Errorf("not every request succeeded: %s, %s", requests[0], status[0])
		}
	}
	done, err := strconv.Atoi(string(status[1]))
	if err != nil || done == 0 {
		return 0, fmt.Errorf("no request succeeded: %s", status[0])
	}
	return done, nil
}

// secure opens a visitor's connection. Its key exchange is X25519 unless the
// configuration says otherwise: nginx knows no hybrid one.
func secure(ctx context.Context, c contender, conf *tls.Config) (*tls.Conn, error) {
	conf.ServerName, conf.InsecureSkipVerify = host, true
	if conf.CurvePreferences == nil {
		conf.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	dialer := tls.Dialer{Config: conf}
	conn, err := dialer.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	return conn.(*tls.Conn), nil
}

func (c contender) request(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s: %s\r\n\r\n", path, host, c.header[0], c.header[1])
}

// ask sends a request and reads the answer's body to its end.
func ask(conn net.Conn, r *bufio.Reader, request []byte) (n int64, err error) {
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
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
// returns how long the answers took, in order. A request that is late because
// the one before it on its connection was slow counts from when it was due.
func paced(ctx context.Context, s settings, c contender) ([]time.Duration, error) {
	total := int(float64(s.rate) * s.span.Seconds())
	gap := time.Second / time.Duration(s.rate)
	var (
		mu   sync.Mutex
		took []time.Duration
	)
	g, ctx := errgroup.WithContext(ctx)
	begin := time.Now().Add(500 * time.Millisecond) // every connection is open by then
	for i := range s.connections {
		g.Go(func() error {
			conn, err := secure(ctx, c, &tls.Config{NextProtos: []string{"http/1.1"}})
			if err != nil {
				return err
			}
			defer conn.Close()
			r, request := bufio.NewReader(conn), c.request("/")
			if _, err := ask(conn, r, request); err != nil {
				return err
			}
			var mine []time.Duration
			for n := i; n < total && ctx.Err() == nil; n += s.connections {
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
	slices.Sort(took)
	return took, nil
}

// handshake is one way of beginning TLS.
type handshake int

const (
	fullHandshake handshake = iota
	resumedHandshake
	hybridHandshake // full, with X25519MLKEM768 where the server knows it
)

// handshakes returns CPU time for one.
func handshakes(ctx context.Context, s settings, c contender, kind handshake) (time.Duration, error) {
	const workers = 8
	confs := make([]*tls.Config, workers)
	for i := range confs {
		conf := &tls.Config{NextProtos: []string{"http/1.1"}}
		switch kind {
		case hybridHandshake:
			conf.CurvePreferences = []tls.CurveID{tls.X25519MLKEM768, tls.X25519}
		case resumedHandshake:
			// A ticket comes after the handshake; reading an answer takes it in.
			conf.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			conn, err := secure(ctx, c, conf)
			if err != nil {
				return 0, err
			}
			_, err = ask(conn, bufio.NewReader(conn), c.request("/"))
			conn.Close()
			if err != nil {
				return 0, err
			}
		}
		confs[i] = conf
	}
	before, err := c.cpu()
	if err != nil {
		return 0, err
	}
	g, group := errgroup.WithContext(ctx) // which ends with Wait
	for i := range workers {
		g.Go(func() error {
			for range s.handshakes / workers {
				conn, err := secure(group, c, confs[i])
				if err != nil {
					return err
				}
				resumed := conn.ConnectionState().DidResume
				if err := conn.Close(); err != nil {
					return err
				}
				if resumed != (kind == resumedHandshake) {
					return fmt.Errorf("%s: a handshake was resumed: %v", c.name, resumed)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	// One request after the last: when it is answered, so are they.
	conn, err := secure(ctx, c, &tls.Config{NextProtos: []string{"http/1.1"}})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := ask(conn, bufio.NewReader(conn), c.request("/")); err != nil {
		return 0, err
	}
	after, err := c.cpu()
	return (after - before) / time.Duration(s.handshakes/workers*workers), err
}

// downloads in one measurement: the kernel's ticks are too coarse for one.
const downloads = 4

// download fetches bulkSize bytes, four times, and returns CPU time for 10⁹ bytes and bytes a
// second.
func download(ctx context.Context, c contender) (perGB time.Duration, rate float64, err error) {
	conn, err := secure(ctx, c, &tls.Config{NextProtos: []string{"http/1.1"}})
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	before, err := c.cpu()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	r := bufio.NewReaderSize(conn, 64<<10)
	for range downloads {
		n, err := ask(conn, r, c.request("/bulk"))
		if err != nil {
			return 0, 0, err
		}
		if n != bulkSize {
			return 0, 0, fmt.Errorf("%d bytes came of %d", n, bulkSize)
		}
	}
	took := time.Since(began)
	after, err := c.cpu()
	return time.Duration(float64(after-before) / (downloads * bulkSize) * 1e9), downloads * bulkSize / took.Seconds(), err
}
