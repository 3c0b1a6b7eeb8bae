package access_test

import (
	"testing"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Whoever is known already costs no memory: a session, an access token that passed
// before, an app password, and the entry in the register of what is open.
func TestKnownVisitorsCostNoMemory(t *testing.T) {
	c, s := newClock(), newSigner(t)
	a, _ := open(t, t.TempDir(), c)
	snap := withPasswords(func(p []controlapi.Person) { p[1].Email = "bob.with.a.long.name@department.example.com" })
	snap.Computer.Host, snap.PublicKeys = root, []string{s.pem}
	a.SetSnapshot(snap)
	cookie := programs.Got(a.NewSession(notes, bob, 1, controlapi.ProofMail))(t)
	bearer, token := access.NewBearer(a), authorized("Bearer "+s.sign(t, bobs(c.now())))
	password := []string{basic("bob.with.a.long.name@department.example.com", bobs1)}
	var entry access.Open
	cancel := func() {}
	ways := map[string]func() (access.Identity, bool){
		"a session": func() (access.Identity, bool) { id, _, ok := a.Session(cookie, notes); return id, ok },
		"a token": func() (access.Identity, bool) {
			id, _, err := bearer.Authenticate(token)
			return id, err == nil
		},
		"a password": func() (access.Identity, bool) { id, _, err := a.Password(password, notes); return id, err == nil },
	}
	for what, known := range ways {
		n := testing.AllocsPerRun(100, func() {
			id, ok := known()
			if d := a.EnterAs(&entry, id, notes, access.Cancel(cancel)); !ok || !d.Allowed || !entry.Leave() {
				t.Fatalf("%s: %v, %+v", what, ok, d)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
