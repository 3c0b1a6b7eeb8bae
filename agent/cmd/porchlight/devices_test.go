package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// by has a visitor show the certificate in a file.
func (s shell) by(file, code string, http2 bool) *http.Client {
	s.t.Helper()
	key, leaf, err := pkcs12.Decode(programs.Got(os.ReadFile(file))(s.t), code)
	programs.Must(s.t, err)
	client := s.visitor(http2)
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}
	return client
}

// TestDevicesWork is the contract of --json for devices, told as one's life: made on the
// command line, used by a program, revoked.
func TestDevicesWork(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	for _, name := range []string{"git", "wiki"} {
		s.publishing(name, strings.ToUpper(name[:1])+name[1:], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get("X-Service-Email"), r.Header["Authorization"])
		}))
	}
	var account agentapi.Account
	s.json(&account, "account")
	file := filepath.Join(t.TempDir(), "phone.p12")
	var made map[string]any
	s.json(&made, "devices", "add", "phone", "--app", "git", "--out", file)
	code, _ := made["code"].(string)
	if len(made) != 2 || made["id"] == "" || !regexp.MustCompile(`^([a-z2-7]{5}-){3}[a-z2-7]{5}$`).MatchString(code) {
		t.Fatalf("add: %v", made)
	}
	if info := programs.Got(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %v", info.Mode())
	}
	get := func(app, file, code string, http2 bool) (int, string) {
		t.Helper()
		req := programs.Got(http.NewRequestWithContext(t.Context(), "GET", "https://"+app+"."+account.Host+"/", nil))(t)
		req.Header.Set("Authorization", "Bearer the-apps")
		return fetch(t, s.by(file, code, http2), req)
	}
	for _, http2 := range []bool{false, true} {
		if status, body := get("git", file, code, http2); status != 200 || body != account.Email+"[Bearer the-apps]" {
			t.Errorf("with it: %d %s", status, body)
		}
		if status, body := get("wiki", file, code, http2); status != 401 {
			t.Errorf("at another app: %d %s", status, body)
		}
	}

	old := filepath.Join(t.TempDir(), "old.p12")
	said := s.ok("devices", "add", "both", "--app", "Git", "--app", "wiki", "--out", old, "--legacy")
	said = said[strings.Index(said, "code: ")+len("code: "):]
	for _, app := range []string{"git", "wiki"} {
		if status, body := get(app, old, said[:23], true); status != 200 {
			t.Errorf("%s by the old kind: %d %s", app, status, body)
		}
	}
	var linked map[string]any
	s.json(&linked, "devices", "add", "tablet", "--app", "git", "--link")
	if link, _ := linked["url"].(string); !regexp.MustCompile(`^https://` + account.Host + `/\.porchlight/device#[\w-]{43}$`).MatchString(link) {
		t.Errorf("a link: %v", linked)
	}

	var all []agentapi.Device
	s.json(&all, "devices", "list")
	if len(all) != 3 || all[0].Name+all[1].Name+all[2].Name != "tabletbothphone" {
		t.Fatalf("list: %+v", all)
	}
	for _, d := range all {
		if d.Email != account.Email || d.AccountID != account.AccountID || d.Ends.Sub(d.CreatedAt).Hours() != 365*24 || d.Name == "both" && strings.Join(d.Apps, "+") != "Git+Wiki" {
			t.Errorf("listed: %+v", d)
		}
	}
	if out := s.ok("devices"); !strings.Contains(out, "tablet") || strings.Contains(out, code) {
		t.Errorf("the list says %s", out)
	}
	if raw, err := os.ReadFile(filepath.Join(s.dir, "agent.db")); err != nil || strings.Contains(string(raw), code) {
		t.Errorf("the code is kept in agent.db (%v)", err)
	}
	id, _ := made["id"].(string)
	if out := s.completed("devices", "revoke", ""); !strings.Contains(out, id+"\tphone of "+account.Email) {
		t.Errorf("revoke is completed by %q", out)
	}
	var closed map[string]any
	s.json(&closed, "devices", "revoke", id)
	if closed["ok"] != true {
		t.Errorf("revoke: %v", closed)
	}
	if status, body := get("git", file, code, true); status != 401 {
		t.Errorf("after it was revoked: %d %s", status, body)
	}
	if out := s.ok("activity", "--limit", "20"); !strings.Contains(out, "a device's certificate was revoked") || !strings.Contains(out, "phone") {
		t.Errorf("the activity says\n%s", out)
	}
}

func TestDevicesWords(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	absent := shell{t, t.TempDir()}
	s.publishing("git", "Git", http.NotFoundHandler())
	file := filepath.Join(t.TempDir(), "x.p12")
	for _, step := range []struct {
		in   shell
		args []string
		code int
		want string
	}{
		{s, []string{"devices"}, 0, "No devices yet"},
		{s, []string{"devices", "--help"}, 0, "porchlight devices add phone --app notes --out phone.p12"},
		{s, []string{"devices", "add", "x", "--app", "wiki", "--out", file}, commandline.ExitRefused, "wiki"},
		{s, []string{"devices", "add", strings.Repeat("x", 61), "--app", "git", "--out", file}, commandline.ExitRefused, "60"},
		{s, []string{"devices", "add", "a\tb", "--app", "git", "--out", file}, commandline.ExitRefused, "character"},
		{s, []string{"devices", "add", "x", "--app", "git", "--out", t.TempDir()}, commandline.ExitRefused, "not a file"},
		{s, []string{"devices", "add", "x", "--app", "git", "--out", filepath.Join(file, "y")}, commandline.ExitRefused, "not saved"},
		{s, []string{"devices", "revoke", "nothing"}, commandline.ExitRefused, "no such device"},
		{s, []string{"devices"}, 0, "No devices yet"}, // what was not saved is revoked
		{absent, []string{"devices", "add", "x", "--app", "git"}, commandline.ExitUsage, "--out"},
		{absent, []string{"devices", "add", "x", "--app", "git", "--out", file, "--link"}, commandline.ExitUsage, "--link"},
		{absent, []string{"devices", "add", "x", "--out", file}, commandline.ExitUsage, "--app"},
		{absent, []string{"devices", "add", " ", "--app", "git", "--out", file}, commandline.ExitUsage, "NAME"},
		{absent, []string{"devices", "add", "--app", "git", "--out", file}, commandline.ExitUsage, "NAME"},
		{absent, []string{"devices", "revoke"}, commandline.ExitUsage, "ID"},
		{absent, []string{"devices", "dance"}, commandline.ExitUsage, "dance"},
		{absent, []string{"devices"}, commandline.ExitNotRunning, "not running"},
	} {
		step.in.wants(step.code, step.want, step.args...)
	}
}
