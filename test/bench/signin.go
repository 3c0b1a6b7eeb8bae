package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"porchlight/control"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// earlier is the version that a sign-in may cost a tenth more than: the last one without an
// audit log.
const earlier = "c3b4a6fe"

const (
	earlierBolt     = earlier + ", bbolt"
	earlierPostgres = earlier + ", PostgreSQL"

	signIn = "sign-in by a mailed link, 48 people at once"
)

// Each person signs in twice from a network of their own, the first time unmeasured, and then
// in another browser.
const signers = 48

// signInPart has people sign in at servers of two versions, by the link of a mail that is
// written to a directory.
func signInPart() part {
	p := part{name: "sign-in", start: (*stage).startSignInPart, work: []work{
		{"sign-in", signIn, []string{onBolt, earlierBolt, onPostgres, earlierPostgres}, signsIn},
	}}
	for ours, theirs := range map[string]string{onBolt: earlierBolt, onPostgres: earlierPostgres} {
		p.goals = append(p.goals, goal{name: signIn, metric: cpuRequest, ours: ours, peer: theirs, limit: 1.1})
	}
	return p
}

func (st *stage) startSignInPart(ctx context.Context) error {
	now, before := st.programs, filepath.Join(st.tools, "before", earlier)
	bolt := func(string) ([]string, error) { return nil, nil }
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		fmt.Fprintf(os.Stderr, "PostgreSQL is left out: %v\n", err)
	} else {
		st.onClose = append(st.onClose, func() { _ = server.Close() }) // it served only this
	}
	postgres := func(string) ([]string, error) {
		database, err := server.NewDatabase()
		return []string{"--postgres", database}, err
	}
	for _, c := range []struct {
		name, bin string
		flags     func(string) ([]string, error)
	}{{onBolt, now, bolt}, {earlierBolt, before, bolt}, {onPostgres, now, postgres}, {earlierPostgres, before, postgres}} {
		if !st.measures(c.name) || server == nil && strings.HasSuffix(c.name, "PostgreSQL") {
			continue
		}
		if !isFile(filepath.Join(c.bin, "porchlight-control")) {
			fmt.Fprintf(os.Stderr, "%s is left out: it is not built (make bench)\n", c.name)
			continue
		}
		flags, err := c.flags(c.name)
		if err != nil {
			return err
		}
		if err := st.server(ctx, c.name, c.bin, flags); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// server starts one in a directory of its own.
func (st *stage) server(ctx context.Context, name, bin string, flags []string) error {
	dir := filepath.Join(st.dir, strings.ReplaceAll(name, ", ", "-"))
	r := &rig.Rig{Bin: bin, Env: rig.Environ(dir), Begin: func(cmd *exec.Cmd) (*programs.Process, error) { return programs.Start(cmd) }}
	// In memory: on ext4 a file costs the more to make the more were removed in the last seconds.
	mails, err := os.MkdirTemp("/dev/shm", "porchlight-mails-")
	if err != nil {
		return err
	}
	st.onClose = append(st.onClose, func() { os.RemoveAll(mails) })
	node, err := r.Node(ctx, filepath.Join(dir, "data"), append(flags, "--domain", "localhost", "--open-sign-up", "--outbox", mails)...)
	if node.Process != nil {
		st.onClose = append(st.onClose, func() { node.Stop() })
	}
	if err != nil {
		return err
	}
	st.stand(contender{name: name, addr: node.Listens[0], pid: node.PID(), ownerAddr: node.AuthURL, relays: []string{mails}})
	return nil
}

// signer is somebody with a browser, which goes to no other page once they are in.
type signer struct {
	email  string
	client *http.Client
}

func newSigner(c contender, n int) *signer {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(1+n>>8), byte(n), 1)}}
	in := func(_ *http.Request, via []*http.Request) error {
		if via[0].URL.Path == control.PathSignInLink {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &signer{email: fmt.Sprintf("person%d@example.net", n), client: &http.Client{CheckRedirect: in, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // whose certificate it is costs us, and not the server
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", c.addr)
		},
	}}}
}

func (s *signer) ask(ctx context.Context, method, address string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusSeeOther {
		err = fmt.Errorf("%s %s: HTTP %d", method, req.URL.Path, resp.StatusCode)
	}
	return err
}

// signIn asks for a mail, opens its link and confirms it.
func (s *signer) signIn(ctx context.Context, c contender, m *mailbox) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	s.client.Jar = jar
	mail := m.to(s.email)
	if err := s.ask(ctx, http.MethodGet, c.ownerAddr+"/signin", nil); err != nil {
		return err
	}
	if err := s.ask(ctx, http.MethodPost, c.ownerAddr+"/signin", url.Values{"email": {s.email}}); err != nil {
		return err
	}
	var link string
	select {
	case link = <-mail:
	case <-ctx.Done():
		return ctx.Err()
	}
	u, err := url.Parse(link)
	if err == nil {
		err = s.ask(ctx, http.MethodGet, link, nil)
	}
	if err == nil {
		err = s.ask(ctx, http.MethodPost, c.ownerAddr+u.Path, u.Query())
	}
	return err
}

// mailbox hands out the links of the mails in a directory.
type mailbox struct {
	dir     string
	mu      sync.Mutex // protects waiting
	waiting map[string]chan string
}

func (m *mailbox) to(email string) <-chan string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting[email] = make(chan string, 1)
	return m.waiting[email]
}

var linkInMail = regexp.MustCompile(`https://\S+`)

// read hands mails out until ctx ends, and removes them.
func (m *mailbox) read(ctx context.Context) error {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(m.dir, "[^.]*"))
		if err != nil {
			return err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			to, _, _ := strings.Cut(strings.TrimPrefix(string(raw), "To: "), "\n")
			m.mu.Lock()
			waits := m.waiting[strings.TrimSpace(to)]
			m.mu.Unlock()
			if waits != nil {
				waits <- linkInMail.FindString(string(raw))
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// signsIn measures sign-ins of people who did so before.
func signsIn(ctx context.Context, st *stage, c contender) ([]reading, error) {
	ctx, stop := context.WithCancel(ctx)
	m := &mailbox{dir: c.relays[0], waiting: map[string]chan string{}}
	handed := make(chan error, 1)
	go func() { handed <- m.read(ctx) }()
	people := make([]*signer, st.signIns)
	once := func(i int) error { return people[i].signIn(ctx, c, m) }
	out, err := func() ([]reading, error) {
		if _, err := inTurns(len(people), func(i int) error { people[i] = newSigner(c, i); return once(i) }); err != nil {
			return nil, err
		}
		before, err := c.cpu()
		if err != nil {
			return nil, err
		}
		took, err := inTurns(len(people), once)
		if err != nil {
			return nil, err
		}
		// What is written a second later belongs to it, too.
		time.Sleep(1500 * time.Millisecond)
		after, err := c.cpu()
		n := float64(len(people))
		return []reading{{perSecond, n / took.Seconds()}, {cpuRequest, micro(after-before) / n}}, err
	}()
	stop()
	for _, p := range people {
		if p != nil {
			p.client.CloseIdleConnections()
		}
	}
	return out, errors.Join(err, <-handed)
}

// inTurns has signers at a time do it for each of n.
func inTurns(n int, do func(i int) error) (time.Duration, error) {
	began := time.Now()
	var g errgroup.Group
	g.SetLimit(signers)
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	err := g.Wait()
	return time.Since(began), err
}
