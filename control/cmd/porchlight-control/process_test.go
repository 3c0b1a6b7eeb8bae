package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/controlapi"
	"porchlight/control/mail"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// One life of a server: it starts in an empty directory, is administered over
// its socket and, when it is stopped, without it; nothing secret is in the log.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	mails := filepath.Join(t.TempDir(), "mails")
	s := start(t, dir, "--outbox", mails)
	_, port, _ := net.SplitHostPort(s.addr)
	if want := "https://control.porch.test:" + port; s.AuthURL != want {
		t.Errorf("auth URL %s, want %s", s.AuthURL, want)
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700 | os.ModeDir, filepath.Join(dir, "admin.sock"): 0o600 | os.ModeSocket,
		filepath.Join(dir, "admin.json"): 0o600, filepath.Join(dir, serve.StoreFile): 0o600,
		filepath.Join(dir, "ca", "intermediate-key.pem"): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", path, info, err, want)
		}
	}
	pem := ok(t, "ca", "--data", dir)
	c := s.browser()
	if status, body := fetch(t, c, s.AuthURL+"/auth/pubkey"); status != 200 || !strings.Contains(body, "PUBLIC KEY") {
		t.Errorf("the public key: %d %s", status, body)
	}

	t.Log("accounts and computers")
	added := okJSON[admin.Added](t, "account", "add", "Anna@Example.net", "--short", "anna", "--data", dir)
	if !added.New || added.Email != "anna@example.net" || added.Credential == "" || added.Computer.URL != "https://anna.porch.test:"+port {
		t.Errorf("account add: %+v", added)
	}
	again := okJSON[admin.Added](t, "account", "add", "anna@example.net", "--short", "anna", "--data", dir)
	if again.New || again.Credential != "" || again.ID != added.ID {
		t.Errorf("account add once more: %+v", again)
	}
	sync := func(credential string) int {
		r := programs.Got(http.NewRequest("PUT", s.AuthURL+"/v1/apps", strings.NewReader("[]")))(t)
		r.Header.Set("Authorization", "Bearer "+credential)
		r.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
		r.Header.Set("Content-Type", "application/json")
		resp := programs.Got(c.Do(r))(t)
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := sync(added.Credential); got == 401 || got >= 500 {
		t.Errorf("the credential shown once answers %d", got)
	}
	if got := sync(strings.Repeat("x", 43)); got != 401 {
		t.Errorf("a credential made up answers %d", got)
	}
	for _, refused := range [][]string{
		{"account", "add", "nobody"}, {"account", "add", "ben@example.net", "--short", "anna"}, {"account", "add", "ben@example.net", "--short", "www"},
	} {
		if code, _, err := invoke(t, nil, append(refused, "--data", dir)...); code != commandline.ExitRefused || !strings.HasPrefix(err, "porchlight-control: ") {
			t.Errorf("%v: exit %d, %s", refused, code, err)
		}
	}
	if list := okJSON[[]control.Account](t, "account", "list", "--data", dir); len(list) != 1 || list[0].ID != added.ID {
		t.Errorf("accounts: %+v", list)
	}
	if list := okJSON[[]control.OwnedComputer](t, "computer", "list", "--data", dir); len(list) != 1 || list[0].Owner != "anna@example.net" {
		t.Errorf("computers: %+v", list)
	}

	t.Log("signing in, whose mail is in the outbox and in a file")
	resp := programs.Got(c.PostForm(s.AuthURL+"/signin", map[string][]string{"email": {"anna@example.net"}}))(t)
	resp.Body.Close()
	var outbox []mail.Entry
	programs.Eventually(t, "a mail in the outbox", func() bool {
		outbox = okJSON[[]mail.Entry](t, "outbox", "--data", dir)
		return len(outbox) == 1
	})
	var files []string
	programs.Eventually(t, "a mail in a file", func() bool {
		files, _ = filepath.Glob(filepath.Join(mails, "*.txt"))
		return len(files) == 1
	})
	text, err := os.ReadFile(files[0])
	if err != nil || len(outbox[0].Links) == 0 || !strings.Contains(string(text), outbox[0].Links[0]) {
		t.Errorf("the file: %q %v", text, err)
	}

	t.Log("health and metrics, on their own address")
	for path, want := range map[string]string{
		"/healthz": `"ok":true`, "/readyz": `"ok":true`, "/metrics": "porchlight_relay_tunnels 0",
	} {
		if status, body := fetch(t, probe(t), s.Metrics+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if _, body := fetch(t, probe(t), s.Metrics+"/metrics"); !strings.Contains(body, "\nporchlight_certificate_ends_timestamp_seconds ") {
		t.Errorf("the end of the certificate is not told:\n%s", body)
	} else if !strings.Contains(body, "\ngo_gc_gogc_percent 50\n") {
		t.Errorf("garbage may lie as if computers that sleep left much:\n%s", body)
	}
	if status, _ := fetch(t, c, s.AuthURL+"/metrics"); status != 404 {
		t.Errorf("the auth host answers /metrics with %d", status)
	}
	if _, body := fetch(t, probe(t), s.Metrics+"/metrics"); !strings.Contains(body, `porchlight_http_requests_total{class="4xx",method="GET"} 1`) {
		t.Errorf("requests are not counted:\n%s", body)
	}

	t.Log("a second server of the same directory")
	code, _, refusal := invoke(t, nil, "serve", "--data", dir, "--domain", "porch.test", "--listen", "127.0.0.1:0")
	if code != commandline.ExitRefused || !strings.Contains(refusal, "in use by another process") {
		t.Errorf("exit %d, %s", code, refusal)
	}

	s.stop()
	t.Log("stopped: the commands open the store themselves")
	if list := okJSON[[]control.OwnedComputer](t, "computer", "list", "--data", dir); len(list) != 1 || list[0].URL != added.Computer.URL {
		t.Errorf("computers: %+v", list)
	}
	if got := ok(t, "ca", "--data", dir); got != pem {
		t.Error("the authority is another one")
	}

	log := s.Stderr()
	for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d of the log is not JSON: %s", i+1, line)
		}
	}
	link := outbox[0].Links[0]
	secrets := map[string]string{"credential": added.Credential, "link": link[strings.LastIndexByte(link, '=')+1:], "address": "anna@example.net"}
	for what, secret := range secrets {
		if len(secret) < 8 || strings.Contains(log, secret) {
			t.Errorf("the %s is in the log", what)
		}
	}
}

// What the operator reads: a remark where there is nothing, then a table.
func TestLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	for verb, remark := range map[string]string{
		"account list": "Nobody can sign in yet", "computer list": "No computer is connected yet", "client list": "No OAuth client is registered",
		"usage": "Nobody visited yet", "token list": "There is no token",
		"outbox": "No mail is kept here", "outbox --waiting": "No mail waits", "outbox --failed": "No mail was given up",
	} {
		code, out, err := invoke(t, nil, append(strings.Fields(verb), "--data", dir)...)
		if code != 0 || out != "" || !strings.Contains(err, remark) {
			t.Errorf("%s of nothing: exit %d, %q, %q", verb, code, out, err)
		}
		if got := ok(t, append(strings.Fields(verb), "--json", "--data", dir)...); got != "[]\n" {
			t.Errorf("%s of nothing as JSON: %q", verb, got)
		}
	}
	added := okJSON[admin.Added](t, "account", "add", "anna@example.net", "--short", "anna", "--data", dir)
	client := okJSON[admin.OAuthSecret](t, "client", "add", "--name", "Pocket Notes", "--redirect-uri", "https://notes.example/cb", "--data", dir)
	public := okJSON[map[string]string](t, "client", "add", "--public", "--name", "Pocket Editor", "--redirect-uri", "cursor://cb", "--data", dir)
	if len(public) != 1 || public["clientId"] == "" {
		t.Errorf("a public client is %v", public)
	}
	if code, _, err := invoke(t, nil, "client", "rotate", public["clientId"], "--data", dir); code != commandline.ExitRefused || !strings.Contains(err, "has no secret to replace") {
		t.Errorf("a new secret for a public client: exit %d, %s", code, err)
	}
	if said := ok(t, "client", "add", "--public", "--name", "Another", "--redirect-uri", "http://[::1]/cb", "--data", dir); !strings.Contains(said, "It is public: it has no secret") {
		t.Errorf("a public client is made with the words %q", said)
	} else {
		ok(t, "client", "remove", strings.Fields(said)[2], "--data", dir)
	}
	ok(t, "client", "allow", "claude.ai", "vscode.dev", "editor.example", "--data", dir)
	ok(t, "client", "disallow", "vscode.dev", "--data", dir)
	for _, args := range [][]string{{"allow", "https://claude.ai"}, {"allow", "*.ai"}, {"disallow", "vscode.dev"}} {
		if code, _, err := invoke(t, nil, append([]string{"client"}, append(args, "--data", dir)...)...); code != commandline.ExitRefused {
			t.Errorf("client %v: exit %d, %s", args, code, err)
		}
	}
	if hosts := okJSON[[]map[string]any](t, "client", "list", "--json", "--data", dir)[2:]; len(hosts) != 2 || hosts[0]["host"] != "claude.ai" || hosts[0]["allowedAt"] == nil || hosts[1]["host"] != "editor.example" {
		t.Errorf("allowed are %v", hosts)
	}
	ok(t, "client", "disallow", "editor.example", "--data", dir)
	token := okJSON[admin.AddedToken](t, "token", "add", "abuse desk", "--scope", "read,suspend", "--data", dir)
	for _, args := range [][]string{{"add", "x", "--scope", "invite"}, {"remove", "x"}} {
		if code, _, err := invoke(t, nil, append([]string{"token"}, append(args, "--data", dir)...)...); code != commandline.ExitRefused {
			t.Errorf("token %v: exit %d, %s", args, code, err)
		}
	}
	day := regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	for verb, want := range map[string][]string{
		"account list":  {"EMAIL ID SINCE", "anna@example.net " + added.ID + " DAY"},
		"computer list": {"NAME OWNER ADDRESS SINCE", "anna anna@example.net " + added.Computer.URL + " DAY"},
		"search ANN":    {"KIND NAME ID SUSPENDED", "account anna@example.net " + added.ID + " -", "computer anna " + added.Computer.ID + " -"},
		"search @exam":  {"KIND NAME ID SUSPENDED", "account anna@example.net " + added.ID + " -"},
		"search pocket": {"KIND NAME ID SUSPENDED", "client Pocket Editor " + public["clientId"] + " -", "client Pocket Notes " + client.ClientID + " -"},
		"token list":    {"NAME ID MAY ENDS USED", "abuse desk " + token.ID + " read, suspend DAY -"},
		"account show anna@example.net": {
			"anna@example.net (" + added.ID + "), since DAY", "Sign-in by mail: on. Passkeys: 0. Providers: none. Sessions: 0.",
			"Computer: " + added.Computer.URL + " (" + added.Computer.ID + ")",
		},
		"client list": {"ID NAME SECRET SINCE REDIRECT URIS", client.ClientID + " Pocket Notes DAY https://notes.example/cb", public["clientId"] + " Pocket Editor none: public cursor://cb", "https://claude.ai/… any, allowed DAY"},
	} {
		var got []string
		for line := range strings.Lines(ok(t, append(strings.Fields(verb), "--data", dir)...)) {
			got = append(got, day.ReplaceAllString(strings.Join(strings.Fields(line), " "), "DAY"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s prints %q, want %q", verb, got, want)
		}
	}
	s.stop()
}
