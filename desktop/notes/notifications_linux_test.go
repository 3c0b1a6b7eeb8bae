package notes

import (
	"log/slog"
	"testing"

	"github.com/godbus/dbus/v5"

	"porchlight/desktop/verbs"
)

// Weakness: GNOME and Plasma send a token for the window before they tell of a click, and
// the note counted as gone with it: its buttons did nothing.
// Checked: whatever comes before it, a click acts once, and none after the note was closed.
func TestClicksAfterOtherSignals(t *testing.T) {
	t.Parallel()
	signal := func(name, said string) *dbus.Signal {
		return &dbus.Signal{Sender: ":1.7", Path: notifyPath, Name: notifyName + "." + name, Body: []any{uint32(3), said}}
	}
	closed := &dbus.Signal{Sender: ":1.7", Path: notifyPath, Name: notifyName + ".NotificationClosed", Body: []any{uint32(3), uint32(2)}}
	token, click := signal("ActivationToken", "xyz"), signal("ActionInvoked", "0")
	for name, c := range map[string]struct {
		heard []*dbus.Signal
		acts  int
		token string
	}{
		"a click":                  {[]*dbus.Signal{click}, 1, ""},
		"a token and a click":      {[]*dbus.Signal{token, click, closed}, 1, "xyz"},
		"an answer and a click":    {[]*dbus.Signal{signal("NotificationReplied", "hello"), click}, 1, ""},
		"two clicks":               {[]*dbus.Signal{token, click, token, click}, 1, "xyz"},
		"a click after its end":    {[]*dbus.Signal{closed, token, click}, 0, ""},
		"a click of somebody else": {[]*dbus.Signal{{Sender: ":1.9", Name: click.Name, Body: click.Body}}, 0, ""},
		"a token of somebody else": {[]*dbus.Signal{{Sender: ":1.9", Name: token.Name, Body: token.Body}, click}, 1, ""},
	} {
		var done []verbs.Action
		var focused string
		n := New(slog.New(slog.DiscardHandler), func(act verbs.Action) { done = append(done, act) }, func(token string) { focused = token })
		deny := verbs.Action{Verb: verbs.Deny, Name: "notes"}
		n.shown["request-notes"] = &shownNote{id: 3, sender: ":1.7", note: Note{Buttons: []Button{{"Deny", deny}}}}
		for _, s := range c.heard {
			n.heard(s)
		}
		if len(done) != c.acts || c.acts == 1 && done[0] != deny {
			t.Errorf("%s: %+v", name, done)
		}
		if focused != c.token {
			t.Errorf("%s: the window has the token %q, want %q", name, focused, c.token)
		}
	}
}

// Whatever an app calls itself, nothing of a notification's text is markup, and
// nothing of it is taken for some.
func TestBodiesAreShownAsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, escaped, plain string }{
		{"notes.maya.localhost, port 80: a, run by b. Then only you can open it.", "notes.maya.localhost, port 80: a, run by b. Then only you can open it.", "notes.maya.localhost, port 80: a, run by b. Then only you can open it."},
		{"R&D <b", "R&amp;D &lt;b", "R＆D ‹b"},
		{`<a href="https://x.example">Notes</a>`, "&lt;a href=&#34;https://x.example&#34;&gt;Notes&lt;/a&gt;", `‹a href="https://x.example"›Notes‹/a›`},
		{"&lt;", "&amp;lt;", "＆lt;"},
	} {
		if got := literalBody(c.body, true); got != c.escaped {
			t.Errorf("%q with markup: %q", c.body, got)
		}
		if got := literalBody(c.body, false); got != c.plain {
			t.Errorf("%q without markup: %q", c.body, got)
		}
	}
}
