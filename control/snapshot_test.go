package control

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/test/programs"
)

// Weakness: a sync is many round trips, so that a database some way off makes a herd
// of agents a collapse. Checked: credential, computer, people, grants and all else are
// read by one statement where the node knows the computer, by two where it does not,
// and a stranger costs one; and a sync says no other than a snapshot.
func TestSyncIsOneStatement(t *testing.T) {
	t.Parallel()
	store := &statements{}
	b := newBench(t, func(c *Config) {
		store.Store, c.Store = c.Store, store
		c.Domain, c.AuthHost = "porch.example", "control.example" // not local mode
	})
	e := b.owner()
	bob := b.member(e.Computer.ID, "bob@example.com")
	from := netip.MustParseAddr("192.0.2.1")
	var whose feed.Credential
	first := func(node *Service, credential string) (controlapi.Snapshot, error) {
		return node.Agents.firstSnapshot(t.Context(), credential, from, func(c feed.Credential) { whose = c })
	}
	sync := func(node *Service, what string, want int64) (out controlapi.Snapshot) {
		t.Helper()
		store.took()
		out, err := first(node, e.Credential)
		if err != nil || whose.Computer != e.Computer.ID {
			t.Fatalf("%s: of %q, %v", what, whose.Computer, err)
		}
		if sent := store.took(); sent != want {
			t.Errorf("%s: %d statements, want %d", what, sent, want)
		}
		if same := ok[controlapi.Snapshot](t)(node.Agents.Snapshot(t.Context(), e.Computer.ID)); same.Version != out.Version {
			t.Errorf("%s: it says %+v, and a snapshot %+v", what, out, same)
		}
		return out
	}
	sync(b.Service, "of a computer this node does not know", 2)
	out := sync(b.Service, "of one it knows", 1)
	if len(out.People) != 2 {
		t.Errorf("%+v", out.People)
	}

	for _, redirect := range []string{"https://b.example/cb", "https://a.example/cb", "com.example.notes:/cb"} {
		b.registeredAt(redirect).granted(bob, e.Computer.Name)
	}
	if granted := sync(b.Service, "after new clients", 1); granted.Grants == "" || granted.Grants == out.Grants {
		t.Errorf("of three new grants it says %q", granted.Grants)
	}
	sync(b.node(), "of a computer with clients, by another node", 2)

	again := func() error { _, err := b.Agents.nextSnapshot(t.Context(), whose); return err }
	store.took()
	err := again()
	if sent := store.took(); err != nil || sent != 1 {
		t.Errorf("looking again: %d statements, %v", sent, err)
	}
	ok[controlapi.Computer](t)(b.Agents.AuthenticateFrom(t.Context(), e.Credential, from, false))
	if sent := store.took(); sent != 1 {
		t.Errorf("any other request: %d statements", sent)
	}

	_, err = first(b.Service, strings.Repeat("x", tokenLen))
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	if sent := store.took(); sent != 1 {
		t.Errorf("a stranger: %d statements", sent)
	}

	// What the node remembers opens nothing.
	programs.Must(t, b.Agents.EndCredential(t.Context(), e.Credential))
	wantRefusal(t, again(), controlapi.CodeUnauthorized)
	_, err = first(b.Service, e.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
	_, err = b.Agents.Authenticate(t.Context(), e.Credential)
	wantRefusal(t, err, controlapi.CodeUnauthorized)
}

// Weakness: nobody could tell whether the control plane has a computer's apps, so each that
// came back wrote them anew; and one report was two changes, of which the first could stay
// without the second. Checked: a snapshot says what was reported, and is another one, once,
// when that is; what is reported again is told to nobody, and what a removed computer
// reports is not kept.
func TestSnapshotSaysWhatWasReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	snapshot := func() controlapi.Snapshot {
		t.Helper()
		return ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	}
	put := func(r controlapi.Apps) {
		t.Helper()
		programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, r))
	}
	before := snapshot()
	if before.Reported != (controlapi.Apps{}).Digest() {
		t.Error("nothing was reported, and it says otherwise")
	}
	notes := controlapi.App{ID: "app1", Name: "notes", Label: "Notes", Live: true}
	stopped := notes
	stopped.Live = false
	for _, r := range []controlapi.Apps{
		{Apps: []controlapi.App{notes}},
		{Apps: []controlapi.App{notes}, Knocks: controlapi.KnocksFromKnown},
		{Apps: []controlapi.App{stopped}, Knocks: controlapi.KnocksFromKnown},
		{Apps: []controlapi.App{notes}, Knocks: controlapi.KnocksFromEverybody},
		{Knocks: controlapi.KnocksFromEverybody},
	} {
		put(r)
		after := snapshot()
		if after.Reported != r.Digest() || after.Version == before.Version || after.Change != before.Change+1 {
			t.Errorf("after %+v: %+v, before %+v", r, after, before)
		}
		put(r)
		if again := snapshot(); again.Change != after.Change {
			t.Errorf("%+v again is another change", r)
		}
		before = after
	}
	programs.Must(t, b.Computers.Remove(t.Context(), e.AccountID, e.Computer.Name))
	put(controlapi.Apps{Apps: []controlapi.App{notes}, Knocks: controlapi.KnocksFromKnown})
	for _, key := range []string{keyComputerApps(e.Computer.ID), keyComputerKnocks(e.Computer.ID), keyVersion(e.Computer.ID), keyChange(e.Computer.ID)} {
		if b.rows(key) != 0 {
			t.Errorf("a removed computer left %s", key)
		}
	}
}

// Weakness: a snapshot held the web origins of clients and nothing of grants, so a client
// with a scheme of its own, a second person's, and a second one of an origin changed
// nothing, and the owner's computer did not look for whom it is open to.
// Checked: each of them is told and is another snapshot, as is its end, which names it; a
// grant in use is, once a day.
func TestSnapshotSaysWhichGrantsHold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	bob, ann := b.member(e.Computer.ID, "bob@example.com"), b.member(e.Computer.ID, "ann@example.com")
	native, web, other := b.registeredAt("com.example.native:/cb"), b.registered(), b.registered()
	watch := b.watch(e.Computer.ID)
	defer watch.unwatch()
	last := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	look := func(what string, anew bool) controlapi.Snapshot {
		t.Helper()
		told := watch.woken()
		now := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
		if told != anew || (now.Version != last.Version) != anew || (now.Grants != last.Grants) != anew {
			t.Errorf("%s: told %v, grants %q and before %q", what, told, now.Grants, last.Grants)
		}
		last = now
		return now
	}
	if look("nothing", false).Grants != "" {
		t.Error("there are none, and it says otherwise")
	}
	tokens := native.granted(bob, e.Computer.Name)
	look("a scheme of its own", true)
	native.granted(ann, e.Computer.Name)
	look("the same client of a second person", true)
	web.granted(bob, e.Computer.Name)
	look("a web client", true)
	other.granted(bob, e.Computer.Name)
	look("another client of that origin", true)

	tokens = ok[Tokens](t)(native.use(tokens.Refresh))
	look("used again at once", false)
	b.clock.Add(indexSlide)
	tokens = ok[Tokens](t)(native.use(tokens.Refresh))
	look("used a day later", true)

	programs.Must(t, b.Grants.RevokeForAccount(t.Context(), bob.ID, grantID(tokens.Refresh)))
	ended := look("revoked", true).RevokedGrants
	if len(ended) != 1 || ended[0].ClientName != "Pocket Notes" || ended[0].Email != "bob@example.com" || ended[0].AccountID != bob.ID || ended[0].CreatedAt.IsZero() {
		t.Errorf("%+v", ended)
	}
}

// Weakness: computers that reported for the first time together each made a row, and in
// PostgreSQL that is a conflict with whoever looked for one on the same page. Checked: what
// a computer reports first changes rows that are there since it was connected, and until
// then they say what no row does.
func TestFirstReportMakesNoRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	keys := func() []string {
		t.Helper()
		return slices.Sorted(maps.Keys(b.stored()))
	}
	before := keys()
	blank := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	reported := controlapi.Apps{Apps: []controlapi.App{{ID: "notes", Name: "notes", Label: "Notes", Live: true}}, Knocks: controlapi.KnocksFromKnown}
	programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, reported))
	if after := keys(); !slices.Equal(before, after) {
		t.Errorf("rows before\n%v\nand after\n%v", before, after)
	}
	without := newBench(t)
	older := without.owner()
	without.drop(keyComputerApps(older.Computer.ID), keyComputerKnocks(older.Computer.ID))
	if s := ok[controlapi.Snapshot](t)(without.Agents.Snapshot(t.Context(), older.Computer.ID)); s.Reported != blank.Reported || s.Knocking != blank.Knocking {
		t.Errorf("without the rows %q and %q are reported, with them %q and %q", s.Reported, s.Knocking, blank.Reported, blank.Knocking)
	}
	if err := without.Agents.PutApps(t.Context(), older.Computer.ID, reported); err != nil {
		t.Errorf("a computer of an earlier version: %v", err)
	}
}
