package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// visitor is a program that is no browser, on this computer: it trusts the local
// authority of the shell's agent.
func (s shell) visitor(http2 bool) *http.Client {
	s.t.Helper()
	root := programs.Got(os.ReadFile(filepath.Join(s.dir, "ca", "root.pem")))(s.t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: protocols,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port) // not every resolver knows these names
		},
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// fetch sends a request, and returns status and body of the answer.
func fetch(t *testing.T, client *http.Client, req *http.Request) (status int, body string) {
	t.Helper()
	res := programs.Got(client.Do(req))(t)
	defer res.Body.Close()
	raw := programs.Got(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(raw)
}

// TestPasswordsWork is the contract of --json for app passwords, told as one's life:
// made on the command line, used by a program, revoked.
func TestPasswordsWork(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("git", "Git, ours", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Service-Email"), r.Header["Authorization"])
	}))
	var account agentapi.Account
	s.json(&account, "account")
	var made map[string]any
	s.json(&made, "passwords", "add", "git", "--name", "laptop")
	password, _ := made["password"].(string)
	if len(made) != 2 || made["id"] == "" || !regexp.MustCompile(`^plp_[a-z2-7]{32}$`).MatchString(password) {
		t.Fatalf("add: %v", made)
	}
	get := func(http2 bool, user string) (int, string) {
		t.Helper()
		req := programs.Got(http.NewRequestWithContext(t.Context(), "GET", "https://git."+account.Host+"/", nil))(t)
		req.SetBasicAuth(user, password)
		return fetch(t, s.visitor(http2), req)
	}
	for _, http2 := range []bool{false, true} {
		if status, body := get(http2, strings.ToUpper(account.Email)); status != 200 || body != account.Email+"[]" {
			t.Errorf("with it: %d %s", status, body)
		}
		if status, body := get(http2, "bob@example.com"); status != 401 {
			t.Errorf("under another name: %d %s", status, body)
		}
	}

	said := s.ok("passwords", "add", "Git, ours", "--name", "phone")
	for _, word := range []string{"password:  plp_", "user name: " + account.Email, "address:   https://git." + account.Host} {
		if !strings.Contains(said, word) {
			t.Errorf("add says %q without %q", said, word)
		}
	}
	var all []agentapi.AppPassword
	s.json(&all, "passwords", "list")
	if len(all) != 2 || all[0].Name != "phone" || all[1].ID != made["id"] || all[1].Name != "laptop" || all[1].App != "Git, ours" ||
		all[1].AppName != "git" || all[1].Email != account.Email || all[1].AccountID != account.AccountID || all[1].CreatedAt.IsZero() {
		t.Errorf("list: %+v", all)
	}
	if out := s.ok("passwords"); !strings.Contains(out, "laptop") || strings.Contains(out, "plp_") {
		t.Errorf("the list says %s", out)
	}
	if out := s.completed("passwords", "revoke", ""); !strings.Contains(out, all[0].ID+"\tphone of "+account.Email) {
		t.Errorf("revoke is completed by %q", out)
	}
	if raw, err := os.ReadFile(filepath.Join(s.dir, "agent.db")); err != nil || strings.Contains(string(raw), password[4:]) {
		t.Errorf("the password is kept in agent.db (%v)", err)
	}

	var closed map[string]any
	s.json(&closed, "passwords", "revoke", all[1].ID)
	if closed["ok"] != true {
		t.Errorf("revoke: %v", closed)
	}
	if status, body := get(true, account.Email); status != 401 || !strings.Contains(body, "not valid here") {
		t.Errorf("after it was revoked: %d %s", status, body)
	}
	s.json(&all, "passwords")
	if len(all) != 1 || all[0].Name != "phone" {
		t.Errorf("the list afterwards: %+v", all)
	}
	s.ok("revoke", "git") // its address with all that opened it
	s.json(&all, "passwords")
	if len(all) != 0 {
		t.Errorf("the list without the app: %+v", all)
	}
}

func TestPasswordsWords(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	absent := shell{t, t.TempDir()}
	s.publishing("git", "Git", http.NotFoundHandler())
	for _, step := range []struct {
		in   shell
		args []string
		code int
		want string
	}{
		{s, []string{"passwords"}, 0, "No app passwords yet"},
		{s, []string{"passwords", "--help"}, 0, "porchlight passwords add git --name laptop"},
		{s, []string{"passwords", "add", "wiki", "--name", "x"}, commandline.ExitRefused, "wiki"},
		{s, []string{"passwords", "add", "git", "--name", strings.Repeat("x", 61)}, commandline.ExitRefused, "60"},
		{s, []string{"passwords", "add", "git", "--name", "a\tb"}, commandline.ExitRefused, "visible"},
		{s, []string{"passwords", "revoke", "nothing"}, commandline.ExitRefused, "no such app password"},
		{absent, []string{"passwords", "add", "git"}, commandline.ExitUsage, "--name"},
		{absent, []string{"passwords", "add", "git", "--name", " "}, commandline.ExitUsage, "--name"},
		{absent, []string{"passwords", "add", "--name", "x"}, commandline.ExitUsage, "APP"},
		{absent, []string{"passwords", "revoke"}, commandline.ExitUsage, "ID"},
		{absent, []string{"passwords", "dance"}, commandline.ExitUsage, "dance"},
		{absent, []string{"passwords"}, commandline.ExitNotRunning, "not running"},
		{absent, []string{"passwords", "add", "git", "--name", "x"}, commandline.ExitNotRunning, "not running"},
	} {
		step.in.wants(step.code, step.want, step.args...)
	}
	// The twenty-first for one app is one too many.
	for i := range 20 {
		s.ok("passwords", "add", "git", "--name", fmt.Sprint(i))
	}
	s.wants(commandline.ExitRefused, "20", "passwords", "add", "git", "--name", "one more")
	var all []agentapi.AppPassword
	s.json(&all, "passwords")
	ids := map[string]bool{}
	for _, p := range all {
		ids[p.ID] = true
	}
	if len(ids) != 20 || !slices.IsSortedFunc(all, func(a, b agentapi.AppPassword) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
		t.Errorf("%d are listed, or not newest first", len(ids))
	}
}
