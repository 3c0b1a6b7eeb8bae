package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// load is what h2load asks for: one request at a time on each stream of each
// connection, the next as soon as the last is answered.
type load struct {
	name    string
	path    string
	streams int // at a time on a connection, of HTTP/2; 0 for HTTP/1.1
	post    int // bytes of a body; 0 for GET
}

// saturate returns processor time for a request, and requests a second. Both are of
// the time in the middle, when every connection stands: the app counts what it
// answered, and h2load says whether all of it was right.
func (l load) saturate(ctx context.Context, st *stage, c contender) (readings []reading, err error) {
	// Longer where it was too short to open them, or for one answer.
	for open, span := st.settle, st.span; open < 10*time.Second; open, span = 4*open, 2*span {
		if readings, err = l.measure(ctx, st, c, open, span); !errors.Is(err, errNothing) {
			break
		}
	}
	return readings, err
}

var errNothing = errors.New("nothing was answered")

func (l load) measure(ctx context.Context, st *stage, c contender, open, span time.Duration) ([]reading, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, span+open+4*time.Second)
	defer cancel()
	cmd, err := l.command(ctx, st, c, open+span)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	time.Sleep(open)
	first, err1 := st.measure(c)
	time.Sleep(span)
	last, err2 := st.measure(c)
	err = <-ended
	if ctx.Err() != nil && whole.Err() == nil {
		return nil, errNothing // h2load sometimes does not end
	}
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, fmt.Errorf("h2load: %w: %s", err, bytes.TrimSpace(out.Bytes()))
	}
	n := float64(last.answered - first.answered)
	if n <= 0 {
		return nil, errNothing
	}
	if _, err := succeeded(out.Bytes()); err != nil {
		return nil, err
	}
	return []reading{
		{cpuRequest, micro(last.cpu-first.cpu) / n},
		{perSecond, n / last.when.Sub(first.when).Seconds()},
	}, nil
}

func (l load) command(ctx context.Context, st *stage, c contender, lasts time.Duration) (*exec.Cmd, error) {
	args := []string{
		"--connect-to=" + c.addr, "-D", fmt.Sprint((lasts + st.settle).Milliseconds(), "ms"),
		// As many requests at a time in all, whatever the streams: one person has a limit.
		"-c", strconv.Itoa(max(st.connections/max(l.streams, 1), 1)), "-m", strconv.Itoa(max(l.streams, 1)), "-H", c.header[0] + ": " + c.header[1],
		"--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--groups=X25519",
	}
	if l.streams == 0 {
		args = append(args, "--h1")
	}
	if l.post > 0 {
		body := filepath.Join(st.dir, fmt.Sprint("body-", l.post))
		if err := os.WriteFile(body, make([]byte, l.post), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "-d", body)
	}
	return exec.CommandContext(ctx, "h2load", append(args, "https://"+host+l.path)...), nil
}

// moment is what a contender had used, and the app answered, at one time.
type moment struct {
	when     time.Time
	cpu      time.Duration
	answered int64
}

func (st *stage) measure(c contender) (m moment, err error) {
	res, err := http.Get("http://" + st.app.Addr + "/count")
	if err != nil {
		return m, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return m, err
	}
	if m.answered, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		return m, err
	}
	m.cpu, err = c.cpu()
	m.when = time.Now()
	return m, err
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
		return 0, fmt.Errorf("%w: %s", errNothing, status[0])
	}
	return done, nil
}
