package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// fed runs a command with something on its standard input.
func (s shell) fed(input string, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var o output
	term := o.terminal()
	term.in = strings.NewReader(input)
	code = run(s.t.Context(), append(args, "--data", s.dir), term)
	return code, o.stdout(), o.stderr()
}

// TestSendersWork is the contract of --json for named senders, told as one's life: named on
// the command line, heard, given another secret, revoked.
func TestSendersWork(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("hooks", "Hooks", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
		fmt.Fprint(w, " ", r.Header.Get("X-Service-User"), " ", r.Header.Get("X-Service-Email"), " ", r.Header.Get("X-Service-Role"))
	}))
	var account agentapi.Account
	s.json(&account, "account")
	const secret, second = "It's a Secret to Everybody", "another secret of it"
	code, out, stderr := s.fed(secret+"\n", "senders", "add", "hooks", "--name", "GitHub", "--path", "/push", "--kind", "github", "--json")
	match := regexp.MustCompile(`^\{\s*"id": "(sender-[a-z2-7]{26})",\s*"url": "(https://hooks\.[^"]*/push)"\s*\}\s*$`).FindStringSubmatch(out)
	if code != 0 || match == nil || match[2] != "https://hooks."+account.Host+"/push" {
		t.Fatalf("add: %q %q %d", out, stderr, code)
	}
	id, url := match[1], match[2]
	n := 0
	post := func(secret string) (int, string) {
		t.Helper()
		n++
		body := fmt.Sprintf("push %d", n)
		mac := hmac.New(sha256.New, []byte(secret))
		io.WriteString(mac, body)
		req := programs.Got(http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body)))(t)
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		return fetch(t, s.visitor(n%2 == 0), req)
	}
	host, _, _ := strings.Cut(account.Host, ":")
	if status, body := post(secret); status != 200 || body != "push 1 "+id+" "+id+"@senders."+host+" member" {
		t.Errorf("with it: %d %s", status, body)
	}
	if status, body := post("of somebody else"); status != 401 || !strings.Contains(body, "not signed as this sender signs") {
		t.Errorf("with another: %d %s", status, body)
	}
	if code, _, stderr := s.run("people", "invite", id+"@senders."+host, "--app", "Hooks"); code == 0 || !strings.Contains(stderr, "nobody gets mail there") {
		t.Errorf("invited: %q %d", stderr, code)
	}
	if code, out, stderr := s.fed(second, "senders", "rotate", id); code != 0 || !strings.Contains(out, "either of two secrets") {
		t.Errorf("rotate: %q %q %d", out, stderr, code)
	}
	for _, one := range []string{secret, second} {
		if status, body := post(one); status != 200 {
			t.Errorf("either of two: %d %s", status, body)
		}
	}
	if out := s.ok("senders", "rotate", id, "--drop-old"); !strings.Contains(out, "GitHub has one secret") {
		t.Errorf("drop-old: %q", out)
	}
	if status, _ := post(secret); status != 401 {
		t.Errorf("the old one: %d", status)
	}
	var all []agentapi.Sender
	s.json(&all, "senders", "list")
	if len(all) != 1 || all[0].ID != id || all[0].URL != url || all[0].Kind != "github" || all[0].Secrets != 1 || all[0].CreatedAt.IsZero() {
		t.Errorf("list: %+v", all)
	}
	if out := s.ok("senders"); !strings.Contains(out, "GitHub") || strings.Contains(out, secret) {
		t.Errorf("the list says %s", out)
	}
	if out := s.completed("senders", "revoke", ""); !strings.Contains(out, id+"\tGitHub, hooks") {
		t.Errorf("revoke is completed by %q", out)
	}
	if out := s.ok("activity"); !strings.Contains(out, "a sender delivered: GitHub") || !strings.Contains(out, "a sender was named by you: GitHub") {
		t.Errorf("the activity says %s", out)
	}
	if out := s.ok("requests", "hooks"); !strings.Contains(out, "GitHub") {
		t.Errorf("the requests are %s", out)
	}
	var closed map[string]any
	s.json(&closed, "senders", "revoke", id)
	if closed["ok"] != true {
		t.Errorf("revoke: %v", closed)
	}
	if status, _ := post(second); status != 401 {
		t.Errorf("after it was revoked: %d", status)
	}
	for _, wrong := range [][]string{
		{"", "senders", "add", "hooks", "--name", "A", "--path", "/a", "--kind", "github"},
		{"two\nlines of it", "senders", "add", "hooks", "--name", "A", "--path", "/a", "--kind", "github"},
		{secret, "senders", "add", "hooks", "--name", "A", "--path", "/a"},
		{secret, "senders", "add", "hooks", "--name", "A", "--path", "/a", "--kind", "github", "--until", "soon"},
	} {
		if code, out, stderr := s.fed(wrong[0], wrong[1:]...); code != 2 || stderr == "" {
			t.Errorf("%q: %q %q %d", wrong, out, stderr, code)
		}
	}
	if out := s.ok("senders"); !strings.Contains(out, "No senders yet") {
		t.Errorf("the list says %s", out)
	}
}
