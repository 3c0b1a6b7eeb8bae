package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// asking is what a page asks, and what of it reached the agent.
type asking struct {
	agent *Agent
	sent  []string
}

func newAsking(answer string, err error) *asking {
	a := &asking{}
	a.agent = NewAgent(func(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
		sent := method + " " + path
		if body != nil {
			raw, _ := json.Marshal(body)
			sent += " " + string(raw)
		}
		if _, bounded := ctx.Deadline(); !bounded {
			sent += " for ever"
		}
		a.sent = append(a.sent, sent)
		return json.RawMessage(answer), err
	})
	return a
}

// ask asks with values as a page writes them.
func (a *asking) ask(t *testing.T, operation, values string) (json.RawMessage, error) {
	t.Helper()
	var given map[string]any
	programs.Must(t, json.Unmarshal([]byte(values), &given))
	return a.agent.Ask(operation, given)
}

func TestAskSendsWhatTheOperationIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operation, values, want string }{
		{"ownerState", `{}`, `GET /owner/state`},
		{"ownerState", `null`, `GET /owner/state`},
		{"approve", `{"name":"notes","label":"Notes","localPort":3000,"program":"","user":"maya"}`, `POST /owner/apps/notes/approve {"label":"Notes","localPort":3000,"program":"","user":"maya"}`},
		{"changeOptions", `{"name":"notes","h2c":true,"identityHeader":null}`, `PATCH /owner/apps/notes/options {"h2c":true,"identityHeader":null}`},
		{"ownerInvite", `{"email":"bob@example.com","apps":["Notes"]}`, `POST /owner/people/invite {"apps":["Notes"],"email":"bob@example.com"}`},
		{"settleHeld", `{}`, `POST /owner/people/settle {}`},
		{"activity", `{"limit":1000}`, `GET /owner/activity?limit=1000`},
		{"seeNotices", `{"id":9007199254740991}`, `POST /owner/notices/9007199254740991/seen`},
		// Whatever a value holds, it is one segment of the path.
		{"pause", `{"name":"../../dark"}`, `POST /owner/apps/..%2F..%2Fdark/pause`},
		{"pause", `{"name":"%2e%2e%2fdark"}`, `POST /owner/apps/%252e%252e%252fdark/pause`},
		{"pause", `{"name":"notes/revoke?x#y"}`, `POST /owner/apps/notes%2Frevoke%3Fx%23y/pause`},
		{"pause", `{"name":"notes HTTP/1.1\r\nX-Owner-Secret: x\r\n\r\n"}`, `POST /owner/apps/notes%20HTTP%2F1.1%0D%0AX-Owner-Secret:%20x%0D%0A%0D%0A/pause`},
		{"forgetUser", `{"id":"{id}"}`, `DELETE /owner/users/%7Bid%7D`},
	} {
		a := newAsking(`{"closed":1}`, nil)
		answer, err := a.ask(t, tt.operation, tt.values)
		if err != nil || string(answer) != `{"closed":1}` || len(a.sent) != 1 || a.sent[0] != tt.want {
			t.Errorf("%s %s: sent %q, answered %s, %v; want %q", tt.operation, tt.values, a.sent, answer, err, tt.want)
		}
	}
}

func TestAskRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operation, values, says string }{
		{"open", `{"name":"notes"}`, `may not ask for "open"`},
		{"ownerEvents", `{}`, `may not ask`},
		{"publish", `{}`, `may not ask`},
		{"", `{}`, `may not ask`},
		{"__proto__", `{}`, `may not ask`},
		{"GoDark", `{}`, `may not ask`},
		{"/owner/dark", `{}`, `may not ask`},
		{"POST /owner/dark", `{}`, `may not ask`},
		{"pause", `{}`, `no "name"`},
		{"pause", `{"name":"notes","method":"DELETE"}`, `"method", which it does not take`},
		{"pause", `{"name":"notes","X-Owner-Secret":"x"}`, `"X-Owner-Secret", which`},
		{"pause", `{"name":"notes","__proto__":{"path":"/owner/dark"}}`, `"__proto__", which`},
		{"pause", `{"Name":"notes"}`, `"Name", which`},
		{"goDark", `{"path":"/owner/state"}`, `"path", which`},
		{"pause", `{"name":""}`, `"name" that is not`},
		{"pause", `{"name":"."}`, `"name" that is not`},
		{"pause", `{"name":".."}`, `"name" that is not`},
		{"pause", `{"name":["notes"]}`, `"name" that is not a text`},
		{"pause", `{"name":null}`, `"name" that is not a text`},
		{"seeNotices", `{"id":"1"}`, `"id" that is not a whole number`},
		{"seeNotices", `{"id":1.5}`, `"id" that is not a whole number`},
		{"seeNotices", `{"id":1e16}`, `"id" that is not a whole number`},
		{"ownerInvite", `{"email":"b","apps":"Notes"}`, `"apps" that is not a list of texts`},
		{"ownerInvite", `{"email":"b","apps":[1]}`, `"apps" that is not a list of texts`},
		{"ownerGrant", `{"accountId":"a","app":"Notes","granted":"yes"}`, `"granted" that is not true or false`},
		{"changeOptions", `{"name":"notes","h2c":{}}`, `"h2c" that is not`},
		// Nobody approves by the window what they did not see, or orders certificates elsewhere.
		{"approve", `{"name":"notes"}`, `no "label"`},
		{"approve", `{"name":"notes","alone":true,"label":"Notes","localPort":1,"program":""}`, `no "user"`},
		{"connect", `{"url":"https://x.example","acmeDirectory":"https://y.example"}`, `"acmeDirectory", which`},
	} {
		a := newAsking(`{}`, nil)
		_, err := a.ask(t, tt.operation, tt.values)
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.HasSuffix(err.Error(), ".") || len(a.sent) != 0 {
			t.Errorf("%s %s: %v, and sent %q", tt.operation, tt.values, err, a.sent)
		}
	}
}

// What the agent refuses reaches the page as it is.
func TestAskPassesARefusalOn(t *testing.T) {
	t.Parallel()
	if _, err := newAsking("", ErrNotReady).ask(t, "goDark", `{}`); !errors.Is(err, ErrNotReady) {
		t.Errorf("refused with %v", err)
	}
}

// FuzzAskStaysOnItsPath: no text leads to another address than the operation's.
func FuzzAskStaysOnItsPath(f *testing.F) {
	for _, name := range []string{"notes", "..", "a/../b", "%2f", "\n", "?", "{name}", "\x00", "é"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		path, _, err := operations["pause"].request(map[string]any{"name": name})
		if err != nil {
			return
		}
		u, err := url.ParseRequestURI("http://localhost" + path)
		if err != nil || u.RawQuery != "" || u.Path != "/owner/apps/"+name+"/pause" || strings.Count(u.EscapedPath(), "/") != 4 || u.JoinPath().EscapedPath() != u.EscapedPath() {
			t.Errorf("%q leads to %s, %v", name, path, err)
		}
	})
}
