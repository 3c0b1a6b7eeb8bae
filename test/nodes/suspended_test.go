package nodes

import (
	"errors"
	"io"
	"os"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/told"
)

// What the operator suspends at one node is told by the others' syncs, and ten seconds later
// both nodes cut off a computer that does not obey: the visits that are open, by its own node
// and by the other, and all that come. Resumed, visitors come again.
func TestSuspendedAtNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	say := []string{"--abuse-contact", "abuse@example.net"}
	one, two := start(t, "one", database, dirs[0], say...), start(t, "two", database, dirs[1], say...)
	roots := programs.Got(rig.Roots(rig.Authority(dirs[0]), rig.Authority(dirs[1])))(t)
	var anna struct{ Credential string }
	programs.Must(t, one.Run(&anna, "account", "add", "anna@example.net", "--short", "anna"))
	relayOf := func(n *rig.Node) controlapi.Relay {
		return controlapi.Relay{Address: n.Listens[0], ServerName: "control.porch.test"}
	}
	startComputer(t, anna.Credential, roots).use(relayOf(two))
	nodes := []*rig.Node{one, two}
	visits := map[*rig.Node]io.ReadWriter{}
	reached := func(n *rig.Node) bool {
		conn, err := visit(n.Listens[0])
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			visits[n] = conn
		}
		return err == nil
	}
	for _, n := range nodes {
		programs.Eventually(t, "a visitor comes", func() bool { return reached(n) })
	}
	hears := told.New(t, relayOf(two), roots, anna.Credential)
	before := programs.Got(hears.Next(t.Context(), ""))(t)
	if before.Suspended != nil {
		t.Fatalf("it is suspended before: %+v", before.Suspended)
	}

	programs.Must(t, one.Run(nil, "suspend", "computer", "anna", "--reason", "Complaint 2211"))
	after := programs.Got(hears.Next(t.Context(), before.Version))(t)
	if after.Suspended == nil || after.Suspended.Ask != "abuse@example.net" {
		t.Errorf("it is told %+v", after.Suspended)
	}
	for _, n := range nodes {
		if k, err := visits[n].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a visit at %s goes on: %d bytes, %v", n.Listens[0], k, err)
		}
		if reached(n) {
			t.Errorf("another visitor is let through at %s", n.Listens[0])
		}
	}
	hears.Close() // it takes visits, and lets them wait
	programs.Must(t, two.Run(nil, "resume", "computer", "anna"))
	for _, n := range nodes {
		programs.Eventually(t, "a visitor comes again", func() bool { return reached(n) })
	}
}
