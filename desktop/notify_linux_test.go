package desktop

import "testing"

// Whatever an app calls itself, nothing of a notification's text is markup, and
// nothing of it is taken for some.
func TestBodiesAreShownAsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, escaped, plain string }{
		{"notes.maya.localhost, port 80: a, run by b. Only you could open it.", "notes.maya.localhost, port 80: a, run by b. Only you could open it.", "notes.maya.localhost, port 80: a, run by b. Only you could open it."},
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
