package control

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
)

// ends has a computer say, to this node, when its first certificate ends; zero for none.
func ends(t *testing.T, node *Service, e controlapi.Enrolled, at time.Time) {
	t.Helper()
	apps := controlapi.Apps{Apps: []controlapi.App{{ID: "app1", Name: "notes", Label: "Notes", Live: true}}, CertificateEnds: at}
	programs.Must(t, node.Agents.PutApps(t.Context(), e.Computer.ID, apps))
	if said := ok[controlapi.Snapshot](t)(node.Agents.Snapshot(t.Context(), e.Computer.ID)).Reported; said != apps.Digest() {
		t.Errorf("of a report that ends at %v the snapshot says another digest: it is reported again and again", at)
	}
}

// Certificates that are not renewed are told by their computers, at whichever node, and listed
// the soonest first at each: until they are renewed, or their computer is gone, disconnected or
// connected anew. What is far off is not shown, and of no computer more than a key is kept.
func TestCertificatesThatEnd(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"memory":     func(*testing.T) string { return "memory:" },
		"file":       func(t *testing.T) string { return filepath.Join(t.TempDir(), "control.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCertificatesThatEnd(t, newBenchOn(t, url(t)))
		})
	}
}

func testCertificatesThatEnd(t *testing.T, b *bench) {
	one, two, now := b.Service, b.node(), b.clock.Now()
	own := map[string]controlapi.Enrolled{}
	for _, name := range strings.Fields("ada bea cid dot eve fay") {
		own[name] = ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), name+"@example.net", name))
	}
	at := func(days int) time.Time { return now.Add(time.Duration(days) * day) }
	listed := func(want string) {
		t.Helper()
		for i, node := range []*Service{one, two} {
			list := func(q Query) (Page[EndingCertificate], error) { return node.Overview.Certificates(t.Context(), q) }
			for limit := range 4 {
				var names []string
				for _, c := range all(t, list, Query{}, limit+1) {
					names = append(names, c.Name)
					if c.Owner != c.Name+"@example.net" || c.Ends.IsZero() {
						t.Errorf("of %s is shown %+v", c.Name, c)
					}
				}
				if got := strings.Join(names, " "); got != want {
					t.Errorf("node %d, %d a page: %q, not %q", i, limit+1, got, want)
				}
			}
		}
	}
	listed("")
	ends(t, one, own["ada"], at(9))
	ends(t, two, own["bea"], at(3))
	ends(t, one, own["cid"], at(-5))
	ends(t, one, own["dot"], at(12))
	ends(t, two, own["eve"], at(20)) // far off
	ends(t, two, own["fay"], at(3))
	both := "bea fay"
	if own["fay"].Computer.ID < own["bea"].Computer.ID {
		both = "fay bea"
	}
	listed("cid " + both + " ada dot")
	ends(t, two, own["ada"], at(1)) // another one that ends sooner
	ends(t, one, own["fay"], time.Time{})
	listed("cid ada bea dot")
	b.clock.Add(7 * day)
	listed("cid ada bea dot eve")
	programs.Must(t, b.Computers.Disconnect(t.Context(), own["dot"].AccountID, "dot"))
	programs.Must(t, b.Accounts.Remove(t.Context(), "cid@example.net"))
	ok[controlapi.Enrolled](t)(two.Computers.Ensure(t.Context(), "bea@example.net", "bea")) // another agent
	listed("ada eve")
	if n := b.rows("certificate-ends/"); n != 2 {
		t.Errorf("%d keys of two computers", n)
	}
	for _, bad := range []time.Time{time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		wantRefusal(t, b.Agents.PutApps(t.Context(), own["ada"].Computer.ID, controlapi.Apps{CertificateEnds: bad}), controlapi.CodeInvalid)
	}
	// It says so again and again: one key, of some bytes.
	for i := range 40 {
		ends(t, one, own["ada"], at(8).Add(time.Duration(i)*time.Second+time.Nanosecond))
	}
	for key, value := range b.stored() {
		if strings.HasPrefix(key, "certificate-ends/") && len(key)+len(value) > 100 {
			t.Errorf("%s has %d bytes", key, len(key)+len(value))
		}
	}
	if n := b.rows("certificate-ends/"); n != 2 {
		t.Errorf("%d keys after many reports", n)
	}
	b.clock.Add(400 * day)
	listed("")
}

// A node of an earlier version writes a computer's row without that field, and so leaves its key:
// that shows nothing, and no computer twice.
func TestKeysOfCertificatesThatAreLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	list := func() []EndingCertificate {
		return all(t, func(q Query) (Page[EndingCertificate], error) { return b.Overview.Certificates(t.Context(), q) }, Query{}, 5)
	}
	first := b.clock.Now().Add(2 * day)
	ends(t, b.Service, e, first)
	edit(b, keyComputer(e.Computer.ID), func(c *computer) { c.CertificateEnds = time.Time{} })
	b.keep(keyCertificateEnd(first, "nobody"), struct{}{})
	if got := list(); len(got) != 0 {
		t.Errorf("left is %+v", got)
	}
	ends(t, b.Service, e, first.Add(day))
	if got := list(); len(got) != 1 || !got[0].Ends.Equal(first.Add(day)) || !got[0].Away(b.clock.Now()) {
		t.Errorf("told anew: %+v", got)
	}
	ends(t, b.Service, e, first)
	b.note(e.Computer.ID, b.clock.Now())
	programs.Must(t, b.Agents.writeSeen(t.Context(), []string{e.Computer.ID}, map[string]time.Time{e.Computer.ID: b.clock.Now()}))
	if got := list(); len(got) != 1 || got[0].Away(b.clock.Now()) || !got[0].Away(b.clock.Now().Add(awayAfter+time.Second)) {
		t.Errorf("it is here: %+v", got)
	}
}

// Weakness: a list of what needs a look is asked for on each first page of /admin; read from all
// computers it would cost as much as there are. Checked: no more rows are read than are shown.
func TestCertificatesAreReadByTheirKeys(t *testing.T) {
	t.Parallel()
	store := &counting{}
	b := newBench(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	for i := range 30 {
		name := fmt.Sprintf("c%02d", i)
		e := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "anna@example.net", name))
		if i%3 == 0 {
			ends(t, b.Service, e, b.clock.Now().Add(time.Duration(i+1)*time.Hour))
		}
	}
	store.reads = 0
	var scanned []string
	store.Store = &asking{store.Store, func(call string, keys ...string) error {
		if call == "Scan" {
			scanned = append(scanned, keys[0])
		}
		return nil
	}}
	p := ok[Page[EndingCertificate]](t)(b.Overview.Certificates(t.Context(), Query{Limit: 5}))
	if len(p.Rows) != 5 || p.Next == "" || store.reads > 6 || !slices.Equal(scanned, []string{"certificate-ends/"}) {
		t.Errorf("%d rows, %d reads, scanned %v", len(p.Rows), store.reads, scanned)
	}
}

// asking is a store that says what its views read.
type asking struct {
	kv.Store
	asked func(call string, keys ...string) error
}

func (s *asking) View(ctx context.Context, fn func(kv.Tx) error) error {
	return s.Store.View(ctx, func(tx kv.Tx) error { return fn(askedTx{tx, s.asked}) })
}
