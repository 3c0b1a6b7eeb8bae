package control

import (
	"slices"
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Apps reached by TCP are for the client that is built in, one at a time, and it is for
// nothing else: a program that everybody may start must not open web apps, nor one that was
// let into those a database.
func TestReachIsForTCPAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	s.report(append(slices.Clone(threeApps), controlapi.App{ID: "t1", Name: "db", Label: "Database", Live: true, TCP: true}, controlapi.App{ID: "t2", Name: "ssh", Label: "SSH", Live: true, TCP: true})...)
	b.changePerson(s.computer, s.bob.ID, func(p *person) { p.Apps = append(p.Apps, "t1", "t2") })
	const db, ssh, notes, all = "https://db.maya.localhost:8443", "https://ssh.maya.localhost:8443", "https://notes.maya.localhost:8443", "https://maya.localhost:8443"
	for _, c := range []struct {
		client    string
		resources []string
		good      bool
	}{
		{controlapi.ReachClient, []string{db}, true}, {s.ID, []string{notes}, true}, {s.ID, []string{all}, true},
		{controlapi.ReachClient, nil, false}, {controlapi.ReachClient, []string{db, ssh}, false}, {controlapi.ReachClient, []string{all}, false},
		{controlapi.ReachClient, []string{notes}, false}, {controlapi.ReachClient, []string{db, notes}, false},
		{s.ID, []string{db}, false}, {s.ID, []string{notes, db}, false}, {s.ID, []string{all, db}, false},
	} {
		if _, err := b.Grants.Asked(t.Context(), s.bob.ID, c.client, c.resources); (err == nil) != c.good || err != nil && !IsRefusal(err, controlapi.CodeInvalidTarget) {
			t.Errorf("%s asks for %q: %v", c.client, c.resources, err)
		}
	}
	authorize := func(client, redirect string, apps ...string) (string, error) {
		return b.Grants.Authorize(t.Context(), Authorization{ClientID: client, RedirectURI: redirect, Challenge: challengeOf(proof), Apps: apps, Asked: apps}, s.bob, "maya")
	}
	const back = "http://127.0.0.1:4711/"
	for _, apps := range [][]string{nil, {"n1"}, {"t1", "t2"}, {"t1", "n1"}} {
		_, err := authorize(controlapi.ReachClient, back, apps...)
		wantRefusal(t, err, controlapi.CodeForbidden)
	}
	for _, apps := range [][]string{{"t1"}, {"n1", "t1"}} {
		_, err := authorize(s.ID, s.redirect, apps...)
		wantRefusal(t, err, controlapi.CodeForbidden)
	}
	for _, redirect := range []string{"http://127.0.0.1:4711/x", "http://localhost:4711/", "https://127.0.0.1:4711/", "http://127.0.0.1.evil.example/"} {
		_, err := authorize(controlapi.ReachClient, redirect, "t1")
		wantRefusal(t, err, controlapi.CodeInvalidRedirectURI)
	}
	exchanged := func(resources ...string) (Tokens, error) {
		code := ok[string](t)(authorize(controlapi.ReachClient, back, "t1"))
		return b.Grants.Exchange(t.Context(), Credentials{ID: controlapi.ReachClient}, Exchange{Code: code, RedirectURI: back, Verifier: proof}, resources...)
	}
	_, err := exchanged(ssh) // which the person did not allow
	wantRefusal(t, err, controlapi.CodeInvalidTarget)
	tokens := ok[Tokens](t)(exchanged(db))
	if got := s.snapshot().GrantApps[grantID(tokens.Refresh)]; !slices.Equal(got, []string{"t1"}) {
		t.Errorf("the agent is told that it opens %q", got)
	}
	_, err = b.Grants.Exchange(t.Context(), Credentials{ID: controlapi.ReachClient, Secret: "a secret"}, Exchange{Code: tokens.Refresh, RedirectURI: back, Verifier: proof})
	wantRefusal(t, err, controlapi.CodeInvalidClient)

	// An operator ends it as any client; it is there again for who signs in anew.
	ok[Suspension](t)(b.Suspensions.Suspend(t.Context(), SuspendClient, controlapi.ReachClient, "Complaint 2211", ByCommandLine))
	_, err = authorize(controlapi.ReachClient, back, "t1")
	wantRefusal(t, err, controlapi.CodeSuspended)
	ok[Suspension](t)(b.Suspensions.Resume(t.Context(), SuspendClient, controlapi.ReachClient, "a mistake", ByCommandLine))
	programs.Must(t, b.Clients.Remove(t.Context(), controlapi.ReachClient))
	_, err = b.Grants.Refresh(t.Context(), Credentials{ID: controlapi.ReachClient}, tokens.Refresh)
	wantRefusal(t, err, controlapi.CodeAccessDenied)
	ok[Tokens](t)(exchanged())
}
