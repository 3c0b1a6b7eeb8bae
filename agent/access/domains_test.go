package access_test

import (
	"testing"
	"time"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: a name goes to somebody else, to whom browsers then send the sessions that were
// made there. Checked: a session is of one name, and all those of a name end with it, with
// what they have open; what the same person has at the app's own host goes on.
func TestSessionsEndWithTheirDomain(t *testing.T) {
	t.Parallel()
	const name = "notes.maya.test"
	proven := controlapi.Domain{Name: name, AppID: notes, State: controlapi.DomainProven}
	for what, c := range map[string]struct {
		domains []controlapi.Domain
		ends    bool
	}{
		"it stays":               {[]controlapi.Domain{proven}, false},
		"it is gone for a day":   {[]controlapi.Domain{{Name: name, AppID: notes, State: controlapi.DomainGone, Until: time.Now().Add(time.Hour)}}, false},
		"its TXT is gone":        {[]controlapi.Domain{{Name: name, AppID: notes, State: controlapi.DomainGone, Why: controlapi.DomainNoText, Until: time.Now().Add(time.Hour)}}, false},
		"it leads to a stranger": {[]controlapi.Domain{{Name: name, AppID: notes, State: controlapi.DomainGone, Why: controlapi.DomainOtherName, Until: time.Now().Add(time.Hour)}}, true},
		"it leads to 10.0.0.1":   {[]controlapi.Domain{{Name: name, AppID: notes, State: controlapi.DomainGone, Why: controlapi.DomainPrivate, Until: time.Now().Add(time.Hour)}}, true},
		"it is removed":          {nil, true},
		"it was not for a while": {[]controlapi.Domain{{Name: name, AppID: notes, State: controlapi.DomainProven, Held: time.Now().Add(time.Hour)}}, true},
		"it waits":               {[]controlapi.Domain{{Name: name, AppID: notes, State: controlapi.DomainWaiting}}, true},
		"it is another app's":    {[]controlapi.Domain{{Name: name, AppID: "id-photos", State: controlapi.DomainProven}}, true},
		"it goes, another came":  {[]controlapi.Domain{{Name: "new.maya.test", AppID: notes, State: controlapi.DomainProven}}, true},
	} {
		clock := newClock()
		a, _ := open(t, t.TempDir(), clock)
		if _, found := a.OwnDomain(name); found {
			t.Fatal("a domain before there is a snapshot")
		}
		s := snapshot(nil)
		s.Domains = []controlapi.Domain{proven}
		a.SetSnapshot(s)
		if _, found := a.OwnDomain(name); !found {
			t.Fatal("no domain")
		}
		there := programs.Got(a.NewSessionAt(name, notes, bob, 1, controlapi.ProofMail))(t)
		here := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofMail))(t)
		for _, wrong := range [][2]string{{"", there}, {name, here}, {"new.maya.test", there}} {
			if _, _, ok := a.SessionAt(wrong[0], wrong[1], notes); ok {
				t.Errorf("a session is good at %q, too", wrong[0])
			}
		}
		id, _, ok := a.SessionAt(name, there, notes)
		id.Own = name
		cut := false
		d, leave := a.Enter(id, notes, func() { cut = true })
		token := access.Identity{AccountID: bob, GrantID: "g", Own: name}
		byToken := false
		d2, leave2 := a.Enter(token, notes, func() { byToken = true })
		if !ok || !d.Allowed || !d2.Allowed {
			t.Fatalf("%v, %+v, %+v", ok, d, d2)
		}
		s.Version, s.Domains = "w", c.domains
		a.SetSnapshot(s)
		if _, _, ok := a.SessionAt(name, there, notes); ok == c.ends || cut != c.ends || byToken != c.ends {
			t.Errorf("%s: the session is good: %v, its connection was cut: %v, and a token's: %v", what, ok, cut, byToken)
		}
		if _, _, ok := a.Session(here, notes); !ok {
			t.Errorf("%s: the session at the app's own host is over", what)
		}
		back := what == "it was not for a while" // and is open to whoever comes now
		if d, again := a.Enter(token, notes, func() {}); d.Allowed == (c.ends && !back) {
			t.Errorf("%s: somebody comes in there: %+v", what, d)
		} else {
			again()
		}
		leave()
		leave2()
	}
}
