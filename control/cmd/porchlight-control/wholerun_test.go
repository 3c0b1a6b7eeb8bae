package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/emersion/go-message/mail"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/controlapi"
	controlmail "porchlight/control/mail"
	"porchlight/internal/commandline"
	"porchlight/test/mailserver"
	"porchlight/test/programs"
)

var (
	mailedLink  = regexp.MustCompile(`https://\S+token=\S+`)
	mailedToken = regexp.MustCompile(`token=([A-Za-z0-9_-]{43})`)
	mailedCode  = regexp.MustCompile(`Your code: (\d{3}) (\d{3})`)
)

// text is the plain part of a mail.
func text(t *testing.T, m mailserver.Mail) string {
	t.Helper()
	r := programs.Got(mail.CreateReader(bytes.NewReader(m.Data)))(t)
	part := programs.Got(r.NextPart())(t)
	b := programs.Got(io.ReadAll(part.Body))(t)
	return string(b)
}

// person is a browser with its cookies.
type person struct {
	t    *testing.T
	http *http.Client
	base string
	// secrets are what was handed to this browser.
	secrets map[string]string
}

func (s *server) person() *person {
	jar := programs.Got(cookiejar.New(nil))(s.t)
	c := s.browser()
	c.Jar = jar
	return &person{t: s.t, http: c, base: s.AuthURL, secrets: map[string]string{}}
}

// send is one request; it returns where the answer leads, if anywhere, and its
// body, and keeps the cookies it set.
func (p *person) send(method, path string, form url.Values, want int) (location, body string) {
	p.t.Helper()
	target := path
	if !strings.HasPrefix(path, "https://") {
		target = p.base + path
	}
	r := programs.Got(http.NewRequest(method, target, strings.NewReader(form.Encode())))(p.t)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", p.base)
	}
	resp := programs.Got(p.http.Do(r))(p.t)
	defer resp.Body.Close()
	b := programs.Got(io.ReadAll(resp.Body))(p.t)
	if resp.StatusCode != want {
		p.t.Fatalf("%s %s: %d, want %d: %s", method, r.URL.Path, resp.StatusCode, want, b)
	}
	for _, c := range resp.Cookies() {
		if c.Value != "" {
			p.secrets["cookie "+c.Name+" "+c.Value[:4]] = c.Value
		}
	}
	return resp.Header.Get("Location"), string(b)
}

// A whole life of a server that delivers mail, at its most talkative: somebody
// signs in, invites, lets an app in and out again, and the operator does what
// operators do. Of everything that was handed out on the way nothing is in the
// log or was printed by the server.
func TestWholeRunHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	mails := startMailServer(t)
	dir := t.TempDir()
	passwordFile := filepath.Join(t.TempDir(), "password")
	programs.Must(t, os.WriteFile(passwordFile, []byte(mailPassword+"\n"), 0o600))
	s := startWith(t, []string{"SSL_CERT_FILE=" + mails.cert}, dir,
		"--smtp", mails.url, "--smtp-password-file", passwordFile, "--mail-from", "Porchlight <porch@mail.example>")
	secrets := map[string]string{"mail password": mailPassword}
	secret := func(what, value string) string {
		t.Helper()
		if len(value) < 6 {
			t.Fatalf("the %s is %q", what, value)
		}
		secrets[what] = value
		return value
	}

	added := okJSON[admin.Added](t, "account", "add", "maya@example.net", "--short", "maya", "--data", dir)
	secret("device credential", added.Credential)
	client := okJSON[admin.OAuthSecret](t, "client", "add", "--name", "Pocket Notes", "--redirect-uri", "https://notes.example/cb", "--data", dir)
	secret("client secret, first", client.ClientSecret)
	client = okJSON[admin.OAuthSecret](t, "client", "rotate", client.ClientID, "--data", dir)
	secret("client secret", client.ClientSecret)

	t.Log("the owner signs in by the link of a mail that a real server took")
	maya := s.person()
	maya.send("POST", "/signin", url.Values{"email": {"maya@example.net"}}, http.StatusSeeOther)
	programs.Eventually(t, "the sign-in mail", func() bool { return len(mails.to("maya@example.net")) == 1 })
	got := mails.to("maya@example.net")[0]
	if !strings.Contains(string(got.Data), "From: \"Porchlight\" <porch@mail.example>") {
		t.Errorf("the sender is another one:\n%s", string(got.Data))
	}
	said := text(t, got)
	token := secret("sign-in link", mailedToken.FindStringSubmatch(said)[1])
	code := mailedCode.FindStringSubmatch(said)
	secret("sign-in code", code[1]+code[2])
	secret("sign-in code as written", code[1]+" "+code[2])
	maya.send("GET", mailedLink.FindString(said), nil, http.StatusOK)
	maya.send("POST", "/signin/link", url.Values{"token": {token}}, http.StatusSeeOther)

	t.Log("and invites")
	agent := &controlapi.Client{BaseURL: s.AuthURL, Credential: added.Credential, HTTP: s.browser()}
	programs.Must(t, agent.PutApps(t.Context(), controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}}))
	programs.Got(agent.Invite(t.Context(), controlapi.Invite{Email: "bob@example.net", Apps: []string{"app1"}}))(t)
	programs.Eventually(t, "the invitation", func() bool { return len(mails.to("bob@example.net")) == 1 })
	got = mails.to("bob@example.net")[0]
	if !strings.Contains(string(got.Data), "Reply-To: <maya@example.net>") {
		t.Errorf("answers do not go to who invited:\n%s", string(got.Data))
	}
	said = text(t, got)
	token = secret("invitation", mailedToken.FindStringSubmatch(said)[1])
	bob := s.person()
	bob.send("GET", mailedLink.FindString(said), nil, http.StatusOK)
	bob.send("POST", "/invitation", url.Values{"token": {token}}, http.StatusSeeOther)

	t.Log("an app is let in, refreshes, and is thrown out")
	verifier := secret("verifier", strings.Repeat("v3r1f1er-", 6))
	sum := sha256.Sum256([]byte(verifier))
	authorize := controlapi.PathAuthorize + "?" + url.Values{
		"client_id": {client.ClientID}, "redirect_uri": {"https://notes.example/cb"}, "response_type": {"code"}, "scope": {"connect"},
		"state":          {secret("state", "a-state-of-some-length")},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	maya.send("GET", authorize, nil, http.StatusOK)
	to, _ := maya.send("POST", authorize, url.Values{"decision": {"allow"}, "computer": {"maya"}}, http.StatusSeeOther)
	answer := programs.Got(url.Parse(to))(t)
	program := s.person()
	tokens := func(form url.Values) (access, refresh string) {
		t.Helper()
		form.Set("client_id", client.ClientID)
		form.Set("client_secret", client.ClientSecret)
		_, body := program.send("POST", controlapi.PathToken, form, http.StatusOK)
		var out struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		}
		programs.Must(t, json.Unmarshal([]byte(body), &out))
		return out.Access, out.Refresh
	}
	access, refresh := tokens(url.Values{
		"grant_type": {"authorization_code"}, "code": {secret("code", answer.Query().Get("code"))},
		"redirect_uri": {"https://notes.example/cb"}, "code_verifier": {verifier},
	})
	secret("access token", access)
	access2, refresh2 := tokens(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {secret("refresh token", refresh)}})
	secret("second access token", access2)
	secret("second refresh token", refresh2)
	again := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {client.ClientID}, "client_secret": {client.ClientSecret}}
	if _, body := program.send("POST", controlapi.PathToken, again, http.StatusBadRequest); !strings.Contains(body, "invalid_grant") {
		t.Errorf("a replay: %s", body)
	}
	grants, err := agent.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("grants: %+v %v", grants, err)
	}
	ok(t, "client", "remove", client.ClientID, "--data", dir)
	again.Set("refresh_token", refresh2)
	program.send("POST", controlapi.PathToken, again, http.StatusBadRequest)
	if grants, err := agent.Grants(t.Context()); err != nil || len(grants) != 0 {
		t.Errorf("grants of a removed client: %+v %v", grants, err)
	}

	t.Log("a key is replaced; agents hear of both")
	if keys := okJSON[[]control.Key](t, "key", "rotate", "--data", dir); len(keys) != 2 || keys[0].Signs || !keys[1].Signs {
		t.Errorf("keys: %+v", keys)
	}
	if snapshot := s.told(added.Credential); len(snapshot.PublicKeys) != 2 {
		t.Errorf("the snapshot has %d keys", len(snapshot.PublicKeys))
	}

	t.Log("changes are counted in another line, while the server runs")
	before := s.told(added.Credential)
	ok(t, "new-line", "--data", dir)
	if after := s.told(added.Credential); after.Line == before.Line || after.Version != before.Version {
		t.Errorf("in line %s after %s", after.Line, before.Line)
	}

	t.Log("a mail nobody can be given is seen by the operator")
	programs.Got(agent.Invite(t.Context(), controlapi.Invite{Email: "gone@example.net", Apps: []string{"app1"}}))(t)
	var failed []controlmail.Failure
	programs.Eventually(t, "a refused mail", func() bool {
		failed = okJSON[[]controlmail.Failure](t, "outbox", "--failed", "--data", dir)
		return len(failed) == 1
	})
	if f := failed[0]; f.To != "gone@example.net" || f.Code != 550 || f.Reason != controlmail.ReasonRefused {
		t.Errorf("failed: %+v", f)
	}
	// A mail is counted once it is noted.
	programs.Eventually(t, "the mails are counted", func() bool {
		_, body := fetch(t, probe(t), s.Metrics+"/metrics")
		return strings.Contains(body, `porchlight_mails_total{outcome="refused"} 1`) &&
			strings.Contains(body, `porchlight_mails_total{outcome="delivered"} 2`) && strings.Contains(body, "porchlight_mails_waiting 0")
	})
	if code, _, err := invoke(t, nil, "outbox", "--data", dir); code != commandline.ExitRefused || !strings.Contains(err, "--failed") {
		t.Errorf("outbox: exit %d, %s", code, err)
	}

	s.stop()
	for _, p := range []*person{maya, bob} {
		for what, value := range p.secrets {
			secrets[what] = value
		}
	}
	said = s.Stderr() + s.Stdout()
	if !strings.Contains(said, `"route":"/signin/link"`) || !strings.Contains(said, "a mail was delivered") {
		t.Fatalf("the log does not show what happened:\n%s", said)
	}
	secrets["the owner's address"], secrets["the member's address"], secrets["an address that is gone"] = "maya@example.net", "bob@example.net", "gone@example.net"
	for what, value := range secrets {
		for _, form := range []string{value, url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			if strings.Contains(said, form) {
				t.Errorf("the %s is in the log", what)
			}
		}
	}
	if len(secrets) < 18 {
		t.Errorf("only %d secrets were looked for", len(secrets))
	}
}
