//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// ofEach is how often somebody does each thing beside the crowd.
const ofEach = 6

// wide is the network of a crowd over IPv6: 32 networks of 64 bits, each a source.
const (
	wideServer = "fd77::1"
	widePrefix = "fd77:0:0:%x::1" // 0x20 to 0x3f, a /59
)

// attackSignIn has a crowd hold every place of the sign-in host with HTTP/2 connections that
// ask for nothing, or once, and come again five seconds after they are closed, while others sign in, are
// invited, get tokens and connect computers. The crowd is of 20 addresses, and then of one
// /59 of IPv6, in a network of its own.
func attackSignIn(ctx context.Context, s *stage, t *tally) error {
	addresses := make([]net.IP, 20)
	for i := range addresses {
		addresses[i] = net.IPv4(127, 0, 1, byte(1+i))
	}
	if err := signInBeside(ctx, s, t, "20 addresses", "127.0.0.1:0", addresses); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-part", "sign-in", "-bin", s.bin, fmt.Sprintf("-quick=%t", s.quick))
	cmd.Env = append(os.Environ(), roleVariable+"=wide")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if errors.Is(err, os.ErrPermission) {
		fmt.Println("   of a /59 of IPv6: not tried, for only root may make a network")
		return nil
	}
	t.try(4 * ofEach)
	if err != nil {
		t.got("a crowd of one /59 of IPv6: %v", err)
	}
	return ctx.Err()
}

// attackSignInWide is attackSignIn's second half, in a network of its own.
func attackSignInWide(ctx context.Context, s *stage, t *tally) error {
	commands := [][]string{{"link", "set", "lo", "up"}, {"-6", "address", "add", wideServer + "/128", "dev", "lo", "nodad"}}
	var addresses []net.IP
	for i := range 32 {
		addresses = append(addresses, net.ParseIP(fmt.Sprintf(widePrefix, 0x20+i)))
		commands = append(commands, []string{"-6", "address", "add", addresses[i].String() + "/128", "dev", "lo", "nodad"})
	}
	for _, args := range commands {
		if _, err := programs.Output(exec.CommandContext(ctx, "ip", args...)); err != nil {
			return err
		}
	}
	return signInBeside(ctx, s, t, "one /59 of IPv6", net.JoinHostPort(wideServer, "0"), addresses)
}

func signInBeside(ctx context.Context, s *stage, t *tally, whose, crowdAt string, addresses []net.IP) error {
	n := s.share(3750, 400)
	places := fmt.Sprint(n * 2 / 3)
	p, err := s.startPlane(ctx, s.dir+"/plane", "--listen", "127.0.0.1:0", "--listen", crowdAt, "--limit-computers", "50", "--limit-auth-connections", places)
	if err != nil {
		return err
	}
	maya, err := p.newTenant(ctx, "maya")
	if err != nil {
		return err
	}
	client, err := p.newClient(ctx, maya)
	if err != nil {
		return err
	}
	defer client.browser.Close()
	granted, err := client.granted(ctx)
	if err != nil {
		return err
	}
	for i := range ofEach {
		if err := p.Run(nil, "account", "add", newcomer(i)); err != nil {
			return err
		}
	}
	crowd, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	auth, err := url.Parse(p.AuthURL)
	if err != nil {
		return err
	}
	door := &computer{roots: p.roots}
	to := p.Listens[len(p.Listens)-1]
	var opened, open atomic.Int64
	for i := range n {
		dialer := &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: addresses[i%len(addresses)]}}
		all.Go(func() {
			for again := time.After(0); ; again = time.After(5 * time.Second) {
				select {
				case <-again:
				case <-crowd.Done():
					return
				}
				conn, err := door.secureTo(crowd, dialer, to, auth.Host, "h2")
				if err != nil {
					continue // refused: it comes again
				}
				opened.Add(1)
				open.Add(1)
				idle(crowd, conn, auth.Host, i%2 == 0)
				open.Add(-1)
			}
		})
	}
	for opened.Load() < int64(n) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	things := []struct {
		what string
		do   func(i int) error
	}{
		{"signs in", func(i int) error { return p.signsIn(ctx, newcomer(i)) }},
		{"is invited", func(i int) error { return maya.invites(ctx, fmt.Sprintf("friend%d@example.net", i)) }},
		{"gets a token", func(i int) error { return client.refreshes(ctx, &granted) }},
		{"connects a computer", func(i int) error { return p.connects(ctx, client.browser, fmt.Sprintf("another%d", i)) }},
	}
	began, before := time.Now(), opened.Load()
	for _, thing := range things {
		for i := range ofEach {
			t.try(1)
			if err := thing.do(i); err != nil {
				t.got("beside a crowd of %s nobody %s: %v", whose, thing.what, err)
			}
		}
	}
	fmt.Printf("   idle HTTP/2 connections %d of %s for %s places, %d of them open at the end and %d opened again in %.0f s; sign-ins, invitations, tokens and computers %d each\n",
		n, whose, places, open.Load(), opened.Load()-before, time.Since(began).Seconds(), ofEach)
	return ctx.Err()
}

func newcomer(i int) string { return fmt.Sprintf("newcomer%d@example.net", i) }

// idle says hello over HTTP/2, asks for something or nothing, and waits for the end.
func idle(ctx context.Context, conn net.Conn, host string, asks bool) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = io.WriteString(conn, http2.ClientPreface) // it may be closed already
	framer := http2.NewFramer(conn, nil)
	_ = framer.WriteSettings()
	if asks {
		e := newEncoder()
		open(framer, e, 0, headOf(&backend{host: host}), true)
	}
	_, _ = io.Copy(io.Discard, conn)
}

// newClient adds an OAuth client, and signs the owner in there.
func (p *plane) newClient(ctx context.Context, owner *tenant) (*remote, error) {
	var made struct{ ClientID, ClientSecret string }
	if err := p.Run(&made, "client", "add", "--name", "Pocket Notes", "--redirect-uri", callback); err != nil {
		return nil, err
	}
	r := &remote{authURL: p.AuthURL, id: made.ClientID, secret: made.ClientSecret, back: callback, browser: visitor.New(p.roots)}
	_, err := r.browser.SignIn(ctx, p.AuthURL+"/account", owner.email, p.mails)
	return r, err
}

func (p *plane) signsIn(ctx context.Context, email string) error {
	browser := visitor.New(p.roots)
	defer browser.Close()
	page, err := browser.SignIn(ctx, p.AuthURL+"/account", email, p.mails)
	return arrived(page, err)
}

func (t *tenant) invites(ctx context.Context, email string) error {
	if _, err := t.owner.Invite(ctx, agentapi.InviteRequest{Email: email, Apps: []string{"Notes"}}); err != nil {
		return err
	}
	link, err := t.plane.mails.Link(ctx, email)
	if err != nil {
		return err
	}
	browser := visitor.New(t.roots)
	defer browser.Close()
	page, err := browser.Open(ctx, link)
	if err == nil {
		page, err = browser.Submit(ctx, page, "", nil)
	}
	return arrived(page, err)
}

// refreshes takes a new token, on a connection of its own.
func (r *remote) refreshes(ctx context.Context, of *tokens) error {
	r.browser.Close()
	status, got, err := r.token(ctx, r.refreshing(of.Refresh))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("HTTP %d, %s", status, got.Error)
	}
	if err == nil {
		*of = got
	}
	return err
}

// connects has a computer ask for a credential, and its owner allow it.
func (p *plane) connects(ctx context.Context, browser *visitor.Visitor, name string) error {
	status, answer, err := p.v1(ctx, http.MethodPost, controlapi.PathEnrol, "", controlapi.EnrolRequest{Machine: name, Platform: "linux", Name: name})
	if err != nil {
		return err
	}
	var begun controlapi.EnrolStarted
	if err := json.Unmarshal([]byte(answer), &begun); err != nil || status != http.StatusOK {
		return fmt.Errorf("asking: HTTP %d, %.200s", status, answer)
	}
	browser.Close() // its connections
	page, err := browser.Open(ctx, begun.VerificationURIComplete)
	if err == nil {
		page, err = browser.Submit(ctx, page, "code", map[string]string{"code": begun.UserCode})
	}
	if err == nil {
		page, err = browser.Submit(ctx, page, "name", map[string]string{"name": name, "decision": "allow"})
	}
	if err = arrived(page, err); err != nil {
		return err
	}
	status, answer, err = p.v1(ctx, http.MethodPost, controlapi.PathEnrolToken, "", controlapi.EnrolPoll{DeviceCode: begun.DeviceCode})
	if err == nil && (status != http.StatusOK || !strings.Contains(answer, "credential")) {
		err = fmt.Errorf("the credential: HTTP %d, %.200s", status, answer)
	}
	return err
}

// arrived is an error for a page that is not what was asked for.
func arrived(page *visitor.Page, err error) error {
	if err == nil && page.Status != http.StatusOK {
		err = fmt.Errorf("HTTP %d at %s", page.Status, page.URL)
	}
	return err
}
