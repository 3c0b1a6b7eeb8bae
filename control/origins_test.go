package control

import (
	"slices"
	"testing"

	"porchlight/control/controlapi"
)

// The snapshot names the origins of clients that hold a grant, tells of a new
// one at once, and forgets them with the last grant.
func TestSnapshotNamesClientOrigins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	c := b.registered()
	origins := func() []string {
		return ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID)).ClientOrigins
	}
	if got := origins(); len(got) != 0 {
		t.Errorf("without a grant: %q", got)
	}
	account := b.member(e.Computer.ID, "bob@example.com")
	code := ok[string](t)(c.code(account, e.Computer.Name))
	watch := b.Agents.Watch(e.Computer.ID)
	defer watch.Stop()
	tokens := ok[Tokens](t)(c.exchange(code))
	select {
	case <-watch.Changed:
	default:
		t.Error("a new grant was not told")
	}
	if got := origins(); !slices.Equal(got, []string{"https://pocketnotes.example"}) {
		t.Errorf("with a grant: %q", got)
	}
	if err := b.Grants.RevokeForComputer(t.Context(), e.Computer.ID, grantID(tokens.Refresh)); err != nil {
		t.Fatal(err)
	}
	if got := origins(); len(got) != 0 {
		t.Errorf("after the grant: %q", got)
	}
}

func TestWebOrigin(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://a.example/cb?x":      "https://a.example",
		"https://a.example:443/cb":    "https://a.example",
		"https://a.example:8443/cb":   "https://a.example:8443",
		"http://127.0.0.1:80/cb":      "http://127.0.0.1",
		"http://localhost:3000":       "http://localhost:3000",
		"com.example.app:/oauth":      "",
		"com.example.app://host/path": "",
	} {
		if got := webOrigin(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}
