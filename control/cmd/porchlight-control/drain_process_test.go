package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"porchlight/control/admin"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

// SIGTERM: a request under way is answered and what it asked for is done, held
// syncs end, new connections find nobody, and those who ask for readiness are told
// at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	c := s.browser()
	added := okJSON[admin.Added](t, "account", "add", "anna@example.net", "--short", "anna", "--data", dir)
	agent := s.agent(added.Credential)
	snapshot := programs.Got(agent.Next(t.Context(), ""))(t)
	held := make(chan error, 1)
	go func() {
		_, err := agent.Next(t.Context(), snapshot.Version)
		held <- err
	}()

	body, feed := io.Pipe()
	answered := make(chan error, 1)
	go func() {
		r, err := http.NewRequest("POST", s.AuthURL+"/signin", body)
		if err != nil {
			answered <- err
			return
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		// The body is asked for once the handler reads it.
		r.Header.Set("Expect", "100-continue")
		resp, err := c.Do(r)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusSeeOther {
				err = fmt.Errorf("status %d", resp.StatusCode)
			}
		}
		answered <- err
	}()
	programs.Got(io.WriteString(feed, "email=anna%40"))(t)
	s.Signal(syscall.SIGTERM)
	programs.Eventually(t, "not ready", func() bool {
		status, text := fetch(t, probe(t), s.Metrics+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "shutting down")
	})
	programs.Eventually(t, "no new connection", func() bool {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	programs.Got(io.WriteString(feed, "example.net"))(t)
	feed.Close()
	if err := <-answered; err != nil {
		t.Errorf("the request under way: %v\n%s", err, s.Stderr())
	}
	if err := <-held; err == nil {
		t.Error("the waiting sync was answered")
	}
	if code := s.Wait(); code != 0 {
		t.Errorf("exit %d\n%s", code, s.Stderr())
	}
	if _, err := os.Stat(filepath.Join(dir, "admin.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if mails := okJSON[[]mail.Entry](t, "outbox", "--data", dir); len(mails) != 1 || mails[0].To != "anna@example.net" {
		t.Errorf("of the sign-in under way there are the mails %+v", mails)
	}
}

// With --drain-wait a load balancer sees that this server ends before anybody is
// turned away. A second signal ends it at once.
func TestDrainWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, "--drain-wait", "10m")
	s.Signal(syscall.SIGTERM)
	programs.Eventually(t, "not ready", func() bool {
		status, _ := fetch(t, probe(t), s.Metrics+"/readyz")
		return status == http.StatusServiceUnavailable
	})
	if status, _ := fetch(t, probe(t), s.Metrics+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d", status)
	}
	if status, _ := fetch(t, s.browser(), s.AuthURL+"/auth/pubkey"); status != http.StatusOK {
		t.Errorf("a new connection is answered with %d", status)
	}
	s.Signal(syscall.SIGTERM)
	s.Wait()
}
