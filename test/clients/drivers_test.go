//go:build clients

package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"porchlight/test/programs"
)

// registered is an OAuth client as its developer has it, and what OAUTH_CLIENT
// holds for a driver.
type registered struct {
	AuthURL        string `json:"authUrl"`
	ClientID       string `json:"clientId"`
	ClientSecret   string `json:"clientSecret"`
	RedirectURI    string `json:"redirectUri"`
	Authentication string `json:"authentication"` // basic, form, detected, none, described (ClientID is an address) or, by Key, private_key_jwt
	Key            any    `json:"key,omitempty"`  // JWK of its private key
}

// driver is a library doing one authorization. Its methods fail the test when
// anything but an OAuth error comes of them, which is a refusal.
type driver interface {
	// begin returns the address of the authorization request.
	begin(t testing.TB) string
	// finish takes the address the browser came back to.
	finish(t testing.TB, callback string) (tokens, *refusal)
	// call opens a page of an app with the latest access token.
	call(t testing.TB, url string) (status int, body string)
	refresh(t testing.TB, refreshToken string) (tokens, *refusal)
}

// tokens is the answer of the token endpoint (O8) as a library hands it on.
type tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        scope  `json:"scope"`
	Address      string `json:"address"`
	Host         string `json:"host"`
}

// scope is a text; requests-oauthlib makes a list of it.
type scope string

func (s *scope) UnmarshalJSON(raw []byte) error {
	var list []string
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		*s = scope(list[0])
		return nil
	}
	return json.Unmarshal(raw, (*string)(s))
}

// refusal is an OAuth error as a library reports it.
type refusal struct {
	Code   string `json:"code"`
	Status int    `json:"status"`
}

// process is a driver in a process of its own: an order is one JSON object on a
// line of its input, {"do": name, ...}, and the answer one on its output:
//
//	begin                   {"url"}
//	finish {callback}       {"tokens"} or {"refused"}
//	call {url}              {"status", "body"}
//	refresh {refreshToken}  {"tokens"} or {"refused"}
//	revoke {token}          {"status"}; of oauth4webapi
//	verify {token,audience} {"claims", "header"}; of jose and PyJWT
//
// {"failed": text} is anything that should not happen.
type process struct {
	what  string
	input io.Writer
	lines *bufio.Reader
}

type answer struct {
	URL     string         `json:"url"`
	Tokens  tokens         `json:"tokens"`
	Refused *refusal       `json:"refused"`
	Status  int            `json:"status"`
	Body    string         `json:"body"`
	Claims  map[string]any `json:"claims"`
	Header  map[string]any `json:"header"`
	Failed  string         `json:"failed"`
}

// program is the command line of a driver or an example.
func program(path string) []string {
	if filepath.Ext(path) == ".mjs" {
		return []string{"node", "--import", "./node/localhost.mjs", path}
	}
	return []string{"/usr/bin/python3", path}
}

// start runs a driver until the test ends.
func (h *house) start(t testing.TB, path string, client registered) *process {
	t.Helper()
	config := programs.Got(json.Marshal(client))(t)
	args := program(path)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(h.programEnv(), "OAUTH_CLIENT="+string(config))
	cmd.Stderr = t.Output()
	in := programs.Got(cmd.StdinPipe())(t)
	out := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close() // ends it
		cmd.Wait() // killed with the test's context at the latest
	})
	return &process{what: path, input: in, lines: bufio.NewReader(out)}
}

func (p *process) order(t testing.TB, order map[string]any) answer {
	t.Helper()
	line, err := json.Marshal(order)
	if err == nil {
		_, err = fmt.Fprintf(p.input, "%s\n", line)
	}
	if err != nil {
		t.Fatalf("%s: %v", p.what, err)
	}
	line, err = p.lines.ReadBytes('\n')
	var a answer
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil || a.Failed != "" {
		t.Fatalf("%s, %v: %v %s", p.what, order["do"], err, a.Failed)
	}
	return a
}

func (p *process) begin(t testing.TB) string {
	t.Helper()
	return p.order(t, map[string]any{"do": "begin"}).URL
}

func (p *process) finish(t testing.TB, callback string) (tokens, *refusal) {
	t.Helper()
	a := p.order(t, map[string]any{"do": "finish", "callback": callback})
	return a.Tokens, a.Refused
}

func (p *process) call(t testing.TB, url string) (int, string) {
	t.Helper()
	a := p.order(t, map[string]any{"do": "call", "url": url})
	return a.Status, a.Body
}

func (p *process) refresh(t testing.TB, refreshToken string) (tokens, *refusal) {
	t.Helper()
	a := p.order(t, map[string]any{"do": "refresh", "refreshToken": refreshToken})
	return a.Tokens, a.Refused
}
