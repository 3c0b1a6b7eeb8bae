//go:build rig

package desktop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"porchlight/test/programs"
)

// call is what a page asks for: an operation and its values in JSON.
type call struct{ operation, values string }

// harmless are values for the operations that take some.
var harmless = map[string]string{
	"activity":           `{"limit":5}`,
	"addClient":          `{"name":"nothing"}`,
	"addDomain":          `{"name":"nothing.test","app":"nothing"}`,
	"checkDomain":        `{"name":"nothing.test"}`,
	"removeDomain":       `{"name":"nothing.test"}`,
	"addGroup":           `{"name":"\n"}`,
	"addSender":          `{"app":"nothing","name":"Nothing","path":"/","kind":"github","secret":"nothing"}`,
	"allowUser":          `{"id":"nobody"}`,
	"approve":            `{"name":"nothing","label":"Nothing","localPort":1,"program":"","user":""}`,
	"assist":             `{"name":"nothing"}`,
	"changeOptions":      `{"name":"nothing","h2c":true}`,
	"connect":            `{"url":"https://127.0.0.1:1"}`,
	"answerKnock":        `{"id":"none","answer":"no"}`,
	"deny":               `{"name":"nothing"}`,
	"denyUser":           `{"id":"nobody"}`,
	"disconnectVisitor":  `{"accountId":"nobody"}`,
	"forgetUser":         `{"id":"nobody"}`,
	"fillGroup":          `{"id":"none","from":""}`,
	"grantGroup":         `{"id":"none","app":"Nothing"}`,
	"invitationLink":     `{"accountId":"nobody"}`,
	"inviteAll":          `{"emails":["nobody"],"apps":["Nothing"]}`,
	"joinGroup":          `{"id":"none","accountId":"nobody"}`,
	"leaveGroup":         `{"id":"none","accountId":"nobody"}`,
	"look":               `{"port":1}`,
	"makeDevice":         `{"name":"nothing","apps":["nothing"]}`,
	"makePassword":       `{"app":"nothing","name":"Nothing"}`,
	"ownerGrant":         `{"accountId":"nobody","app":"Nothing","granted":false}`,
	"ownerInvite":        `{"email":"nobody","apps":["Nothing"]}`,
	"ownerRemovePerson":  `{"accountId":"nobody"}`,
	"removeGroup":        `{"id":"none"}`,
	"pause":              `{"name":"nothing"}`,
	"probe":              `{"name":"nothing"}`,
	"resume":             `{"name":"nothing"}`,
	"revoke":             `{"name":"nothing"}`,
	"revokeGrant":        `{"id":"none"}`,
	"revokeDevice":       `{"id":"none"}`,
	"revokePassword":     `{"id":"none"}`,
	"revokeSender":       `{"id":"none"}`,
	"seeNotices":         `{"id":1}`,
	"changeSenderSecret": `{"id":"none","secret":"nothing"}`,
	"changeSettings":     `{"failStaticHours":24}`,
	"share":              `{"name":"nothing","label":"Nothing","localPort":1,"program":"","user":"nobody","listening":true}`,
	"tryAddress":         `{"name":"nothing"}`,
	"undoActivity":       `{"id":1}`,
	"undoHeld":           `{"accountId":"nobody"}`,
	"undoNotice":         `{"id":1}`,
	"unmute":             `{"name":"nothing"}`,
	"unshare":            `{"name":"nothing"}`,
	"withdrawGroup":      `{"id":"none","app":"Nothing"}`,
}

// W1: a page of the real window asks for every operation of both interfaces. The
// marked ones reach the agent, the others do not, and no value leads elsewhere.
func TestPageAsksForMarkedOperationsOnly(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	p.publish("notes", "Notes", webApp(t, "notes"))
	p.openWindow()
	p.enter(p.named("button", "Approve"))
	p.is("notes", "live")

	marked := describedOperations(t)
	var calls []call
	for _, name := range slices.Sorted(maps.Keys(marked)) {
		values := harmless[name]
		if values == "" {
			values = "{}"
		}
		calls = append(calls, call{name, values})
	}
	said := p.asks(calls)
	for i, said := range said {
		name := calls[i].operation
		if refused := said == fmt.Sprintf("refused: The window may not ask for %q.", name); refused == marked[name] || strings.HasPrefix(said, "refused: The window asked") {
			t.Errorf("%s, which is marked: %v, is %s", name, marked[name], said)
		}
	}

	smuggled := []call{
		{"POST /owner/dark", "{}"}, {"/owner/dark", "{}"}, {"../dark", "{}"}, {"__proto__", "{}"}, {"constructor", "{}"}, {"goDark\n", "{}"}, {"", "{}"},
		{"goDark", `{"method":"GET"}`}, {"ownerState", `{"path":"/owner/dark","method":"POST"}`}, {"ownerState", `{"headers":{"X-Owner-Secret":"x"}}`},
		{"ownerState", `{"__proto__":{"method":"POST"}}`}, {"pause", `{"name":"notes","__proto__":{}}`}, {"pause", `{"name":["notes"]}`},
		{"pause", `{"name":{"toString":"notes"}}`}, {"ownerState", `[{"name":"notes"}]`},
	}
	for _, name := range []string{"", ".", "..", "../../dark?", "../../dark#", "..%2f..%2fdark", "%2e%2e/%2e%2e/dark", "notes/pause#", "notes%2fpause%23", "notes\r\nX-Owner-Secret: x", "notes\x00", "notes?", "./notes", `..\notes`} {
		calls := fmt.Sprintf(`{"name":%q}`, name)
		smuggled = append(smuggled, call{"pause", strings.ReplaceAll(calls, `\x00`, `\u0000`)}, call{"revoke", strings.ReplaceAll(calls, `\x00`, `\u0000`)})
	}
	for i, said := range p.asks(smuggled) {
		if !strings.HasPrefix(said, "refused: ") || !strings.HasSuffix(said, ".") && smuggled[i].values[0] != '[' {
			t.Errorf("%s %s is %s", smuggled[i].operation, smuggled[i].values, said)
		}
	}
	state, err := p.ownerTier().State(t.Context())
	if err != nil || state.DarkSince != nil || len(state.Apps) != 1 || state.Apps[0].Paused || state.Apps[0].Status != "live" {
		t.Errorf("afterwards the agent tells of %+v, %v", state, err)
	}
	var page string
	if err := webDriver("GET", p.session+"/source", nil, &page); err != nil || strings.Contains(page+strings.Join(said, ""), p.secret) {
		t.Errorf("the owner secret is in the page, or in what it was told (%v)", err)
	}
}

// asks has the page ask one after the other, and returns how each ended.
func (p *page) asks(calls []call) (said []string) {
	p.t.Helper()
	var args [][2]string
	for _, c := range calls {
		args = append(args, [2]string{c.operation, c.values})
	}
	if err := webDriver("POST", p.session+"/execute/async", map[string]any{"args": []any{args}, "script": `
		const [calls, done] = arguments;
		const ask = ([operation, values]) => window.go.ui.Agent.Ask(operation, JSON.parse(values)).then((answer) => 'answered: ' + JSON.stringify(answer), (why) => 'refused: ' + (why.message ?? why));
		(async () => {
			const said = [];
			for (const call of calls) said.push(await ask(call));
			done(said);
		})();`}, &said); err != nil || len(said) != len(calls) {
		p.t.Fatalf("the page said %q, %v", said, err)
	}
	return said
}

// describedOperations are all there are, by name; true where the window may ask.
func describedOperations(t *testing.T) map[string]bool {
	t.Helper()
	marked := map[string]bool{}
	for _, name := range []string{"loopback", "control"} {
		spec := programs.Got(openapi3.NewLoader().LoadFromFile("../../docs/openapi/" + name + ".yaml"))(t)
		for _, item := range spec.Paths.Map() {
			for _, op := range item.Operations() {
				marked[op.OperationID] = marked[op.OperationID] || op.Extensions["x-window"] == true
			}
		}
	}
	return marked
}
