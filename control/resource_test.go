package control

import (
	"slices"

	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// A resource is an app's origin, or any address below it, and nothing that only looks like
// one; what the person may not open is as what is not there.
func TestResources(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	other := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "zoe@example.com", "zoe"))
	programs.Must(t, b.Agents.PutApps(t.Context(), other.Computer.ID, controlapi.Apps{Apps: []controlapi.App{{ID: "z1", Name: "notes", Label: "Notes", Live: true}}}))
	own := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	programs.Must(t, b.Agents.PutApps(t.Context(), own.Computer.ID, controlapi.Apps{Apps: []controlapi.App{
		{ID: "n1", Name: "notes", Label: "Notes", Live: true}, {ID: "k1", Name: "desk", Label: "Desk", Live: true},
	}}))
	const notes, photos = "https://notes.maya.localhost:8443", "https://photos.maya.localhost:8443"
	for _, tt := range []struct {
		resources []string
		computer  string // "" for invalid_target
		apps      []string
	}{
		{[]string{notes}, "maya", []string{"n1"}},
		{[]string{notes + "/"}, "maya", []string{"n1"}},
		{[]string{notes + "/mcp"}, "maya", []string{"n1"}},
		{[]string{notes + "/a/../../b?c=d"}, "maya", []string{"n1"}},
		{[]string{"HTTPS://NOTES.Maya.localhost:8443/x"}, "maya", []string{"n1"}},
		{[]string{photos, notes + "/x", notes}, "maya", []string{"n1", "p1"}},
		{[]string{"https://notes.bob.localhost:8443"}, "bob", []string{"n1"}},
		{[]string{"https://maya.localhost:8443"}, "maya", nil},
		{[]string{"https://portal.maya.localhost:8443/"}, "maya", nil},
		{[]string{notes, "https://maya.localhost:8443/"}, "maya", nil},
		{nil, "", nil}, // says nothing

		{resources: []string{"https://diary.maya.localhost:8443"}},
		{resources: []string{"https://none.maya.localhost:8443"}},
		{resources: []string{notes, "https://diary.maya.localhost:8443"}},
		{resources: []string{notes, "https://notes.bob.localhost:8443"}},
		{resources: []string{"https://maya.localhost:8443", "https://bob.localhost:8443"}},
		{resources: []string{"https://notes.zoe.localhost:8443"}},
		{resources: []string{"https://zoe.localhost:8443"}},
		{resources: []string{"https://control.localhost:8443"}},
		{resources: []string{"https://localhost:8443"}},
		{resources: []string{"http://notes.maya.localhost:8443"}},
		{resources: []string{"https://notes.maya.localhost"}},
		{resources: []string{"https://notes.maya.localhost:443"}},
		{resources: []string{"https://notes.maya.localhost:08443"}},
		{resources: []string{"https://notes.maya.localhost.:8443"}},
		{resources: []string{"https://notes.maya.localhost:8443."}},
		{resources: []string{"https://notes..maya.localhost:8443"}},
		{resources: []string{"https://x.notes.maya.localhost:8443"}},
		{resources: []string{"https://.maya.localhost:8443"}},
		{resources: []string{"https://notesmaya.localhost:8443"}},
		{resources: []string{"https://notes.maya.localhost:8443@evil.example"}},
		{resources: []string{"https://evil.example\\@notes.maya.localhost:8443"}},
		{resources: []string{"https://bob@notes.maya.localhost:8443"}},
		{resources: []string{"https://@notes.maya.localhost:8443"}},
		{resources: []string{"https://n%6Ftes.maya.localhost:8443"}},
		{resources: []string{"https://notes%2Emaya.localhost:8443"}},
		{resources: []string{"https://notes.maya.localhost:8443%2F"}},
		{resources: []string{"https://notes%2F.maya.localhost:8443"}},
		{resources: []string{"https://noteſ.maya.localhost:8443"}},
		{resources: []string{"https://note%C5%BF.maya.localhost:8443"}},
		{resources: []string{"https://des\u212A.bob.localhost:8443"}}, // whose lower case is k
		{resources: []string{"https://nötes.maya.localhost:8443"}},
		{resources: []string{"https://ｎotes.maya.localhost:8443"}},
		{resources: []string{"https://notes。maya.localhost:8443"}},
		{resources: []string{"https://xn--nts-1ma.maya.localhost:8443"}},
		{resources: []string{notes + "#"}},
		{resources: []string{notes + "/#x"}},
		{resources: []string{" " + notes}},
		{resources: []string{notes + "\n"}},
		{resources: []string{"//notes.maya.localhost:8443"}},
		{resources: []string{"https:notes.maya.localhost:8443"}},
		{resources: []string{"https:/notes.maya.localhost:8443"}},
		{resources: []string{"https:///notes.maya.localhost:8443"}},
		{resources: []string{"notes.maya.localhost:8443"}},
		{resources: []string{"notes"}},
		{resources: []string{""}},
		{resources: []string{notes, ""}},
		{resources: slices.Repeat([]string{notes}, maxGrantApps+1)},
	} {
		got, err := b.Grants.Asked(t.Context(), s.bob.ID, "a client", tt.resources)
		if tt.computer == "" && tt.resources != nil {
			if !IsRefusal(err, controlapi.CodeInvalidTarget) {
				t.Errorf("%q: %+v, %v", tt.resources, got, err)
			}
			continue
		}
		if err != nil || got.Computer != tt.computer || !slices.Equal(got.Apps, tt.apps) {
			t.Errorf("%q: %+v, %v", tt.resources, got, err)
		}
	}
	ends := b.clock.Now().Add(time.Hour)
	b.changePerson(s.computer, s.bob.ID, func(p *person) { p.Until = map[string]time.Time{"n1": ends} })
	b.clock.Add(time.Hour)
	_, err := b.Grants.Asked(t.Context(), s.bob.ID, "a client", []string{notes})
	wantRefusal(t, err, controlapi.CodeInvalidTarget)
	programs.Must(t, b.People.Leave(t.Context(), s.bob.ID, "maya"))
	_, err = b.Grants.Asked(t.Context(), s.bob.ID, "a client", []string{"https://maya.localhost:8443"})
	wantRefusal(t, err, controlapi.CodeInvalidTarget)
}

// At the token endpoint a client narrows what it may open, for good, and never widens it;
// what its person added it keeps.
func TestResourcesNarrowAndNeverWiden(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	b.changePerson(s.computer, s.bob.ID, func(p *person) { p.Apps = []string{"d1", "n1", "p1"} })
	const notes, photos, diary, root = "https://notes.maya.localhost:8443/mcp", "https://photos.maya.localhost:8443", "https://diary.maya.localhost:8443", "https://maya.localhost:8443"
	allow := func(asked []string, apps ...string) string {
		t.Helper()
		return ok[string](t)(s.Grants.Authorize(t.Context(), Authorization{
			ClientID: s.ID, RedirectURI: s.redirect, Challenge: challengeOf(proof), Apps: apps, Asked: asked}, s.bob, "maya"))
	}
	exchange := func(code string, resources ...string) (Tokens, error) {
		return s.Grants.Exchange(t.Context(), s.Credentials, Exchange{Code: code, RedirectURI: s.redirect, Verifier: proof}, resources...)
	}
	refresh := func(token string, resources ...string) (Tokens, error) {
		return s.Grants.Refresh(t.Context(), s.Credentials, token, resources...)
	}
	opens := func(what string, tokens Tokens, want ...string) {
		t.Helper()
		id := grantID(tokens.Refresh)
		got, listed := s.snapshot().GrantApps[id]
		if !slices.Equal(got, want) || listed != (want != nil) || controlapi.IsLimitedGrant(id) != listed {
			t.Errorf("%s: it opens %v, want %v", what, got, want)
		}
	}
	only := []string{"n1"}
	two := []string{"n1", "p1"}
	for what, tt := range map[string]struct {
		asked, apps []string
		resources   []string
		want        []string // nil for all
		refused     bool
	}{
		"names nothing":              {only, two, nil, two, false},
		"names what it asked for":    {only, two, []string{notes}, two, false},
		"and the person gave all":    {only, nil, []string{notes}, nil, false},
		"names the root":             {only, two, []string{root}, two, false},
		"names less":                 {two, two, []string{photos}, []string{"p1"}, false},
		"names what was added":       {only, two, []string{photos}, []string{"p1"}, false},
		"of all, without asking":     {nil, nil, []string{notes}, only, false},
		"of all, several":            {nil, nil, []string{photos, notes}, two, false},
		"root of all":                {nil, nil, []string{root}, nil, false},
		"names more":                 {only, only, []string{notes, photos}, nil, true},
		"names another":              {only, only, []string{diary}, nil, true},
		"names what is not there":    {only, only, []string{"https://none.maya.localhost:8443"}, nil, true},
		"names another computer":     {nil, nil, []string{"https://bob.localhost:8443"}, nil, true},
		"names more besides what is": {two, two, []string{notes, photos, diary}, nil, true},
	} {
		b.clock.Add(time.Minute)
		code := allow(tt.asked, tt.apps...)
		tokens, err := exchange(code, tt.resources...)
		if tt.refused {
			wantRefusal(t, err, controlapi.CodeInvalidTarget)
			if _, err = exchange(code); !IsRefusal(err, controlapi.CodeInvalidGrant) {
				t.Errorf("%s: then %v", what, err)
			}
		} else {
			programs.Must(t, err)
			opens(what, tokens, tt.want...)
		}
		tokens = ok[Tokens](t)(exchange(allow(tt.asked, tt.apps...)))
		before := s.snapshot()
		next, err := refresh(tokens.Refresh, tt.resources...)
		if tt.refused {
			wantRefusal(t, err, controlapi.CodeInvalidTarget)
			opens(what+", unchanged", ok[Tokens](t)(refresh(tokens.Refresh)), tt.apps...)
			continue
		}
		programs.Must(t, err)
		opens(what+", at refresh", next, tt.want...)
		if after := s.snapshot(); !slices.Equal(tt.apps, tt.want) && (after.Change == before.Change || after.Grants == before.Grants) {
			t.Errorf("%s: the agent is not told", what)
		}
		opens(what+", for good", ok[Tokens](t)(refresh(next.Refresh)), tt.want...)
		_, err = refresh(tokens.Refresh)
		wantRefusal(t, err, controlapi.CodeInvalidGrant)
		if tt.apps == nil && tt.want != nil { // another grant took its place
			if !slices.ContainsFunc(s.snapshot().RevokedGrants, func(g controlapi.RevokedGrant) bool { return g.ID == grantID(tokens.Refresh) }) {
				t.Errorf("%s: the tokens for all are still good", what)
			}
		}
	}
	b.clock.Add(time.Minute)
	// What was narrowed stays so.
	tokens := ok[Tokens](t)(exchange(allow(two, two...), notes))
	for _, resources := range [][]string{{photos}, {notes, photos}, {diary}} {
		_, err := refresh(tokens.Refresh, resources...)
		wantRefusal(t, err, controlapi.CodeInvalidTarget)
	}
	// An app of the same name, approved anew, is another one.
	s.report(append([]controlapi.App{{ID: "n2", Name: "notes", Label: "Notes", Live: true}}, threeApps[1:]...)...)
	b.changePerson(s.computer, s.bob.ID, func(p *person) { p.Apps = []string{"d1", "n2", "p1"} })
	tokens = ok[Tokens](t)(exchange(allow(nil, "p1")))
	_, err := refresh(tokens.Refresh, notes)
	wantRefusal(t, err, controlapi.CodeInvalidTarget)
	programs.Must(t, b.Agents.NoteAppGrants(t.Context(), s.computer, false))
	all := ok[Tokens](t)(exchange(allow(nil)))
	_, err = refresh(all.Refresh, photos)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	ok[Tokens](t)(refresh(all.Refresh))
	_, err = exchange(allow(nil), photos)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
}

// A code that comes a second time ends what it gave, also where that was narrowed since,
// and so has another id.
func TestACodeUsedTwiceEndsWhatWasNarrowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.someApps()
	code := ok[string](t)(s.codeFor())
	tokens := ok[Tokens](t)(s.exchange(code))
	narrow := ok[Tokens](t)(s.Grants.Refresh(t.Context(), s.Credentials, tokens.Refresh, "https://notes.maya.localhost:8443"))
	kept := s.grantedFor("p1")
	_, err := s.exchange(code)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	_, err = s.use(narrow.Refresh)
	wantRefusal(t, err, controlapi.CodeInvalidGrant)
	ok[Tokens](t)(s.use(kept.Refresh))
	if got := s.snapshot().GrantApps; len(got) != 1 {
		t.Errorf("the agent is told of %v", got)
	}
}
