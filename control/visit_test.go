package control

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

const callback = "https://notes.maya.localhost:8443/.porchlight/callback"

// apps reports one live app per id on the computer; app1 is notes, the others
// are named by their ids.
func (b *bench) apps(e controlapi.Enrolled, ids ...string) {
	b.t.Helper()
	b.reports(e, controlapi.KnocksFromNobody, ids...)
}

// reports is apps of a computer that takes knocks.
func (b *bench) reports(e controlapi.Enrolled, from controlapi.KnocksFrom, ids ...string) {
	b.t.Helper()
	var list []controlapi.App
	for _, id := range ids {
		name := id
		if id == "app1" {
			name = "notes"
		}
		list = append(list, controlapi.App{ID: id, Name: name, Label: "Label of " + id, Live: true})
	}
	programs.Must(b.t, b.Agents.PutApps(b.t.Context(), e.Computer.ID, controlapi.Apps{Apps: list, Knocks: from}))
}

func visitQuery(change ...string) string {
	q := url.Values{
		"computer": {"maya"}, "app": {"app1"}, "redirect_uri": {callback}, "state": {"st"},
		"code_challenge": {challengeOf(theVerifier)}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == "-" {
			q.Del(change[i])
		} else {
			q.Set(change[i], change[i+1])
		}
	}
	return q.Encode()
}

const theVerifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// visitFor issues a code to the owner.
func (b *bench) visitFor(e controlapi.Enrolled, app string) (code, verifier string) {
	b.t.Helper()
	b.apps(e, app)
	return b.codeFor(Account{ID: e.AccountID, Email: e.Email}, visitQuery("app", app)), theVerifier
}

func (b *bench) codeFor(a Account, query string) string {
	b.t.Helper()
	v := ok[VisitRequest](b.t)(b.Visits.Parse(b.t.Context(), query))
	to := ok[string](b.t)(b.Visits.Begin(b.t.Context(), v, Session{Account: a}))
	u := ok[*url.URL](b.t)(url.Parse(to))
	if got := u.Scheme + "://" + u.Host + u.Path; got != v.RedirectURI || u.Query().Get("state") != v.State {
		b.t.Fatalf("the visit leads to %s", to)
	}
	return u.Query().Get("code")
}

func TestVisit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	code, verifier := b.visitFor(e, "app1")
	got := ok[controlapi.Visitor](t)(b.Visits.Redeem(t.Context(), e.Computer.ID,
		controlapi.Redeem{Code: code, CodeVerifier: verifier, RedirectURI: callback}))
	snapshot := ok[controlapi.Snapshot](t)(b.Agents.Snapshot(t.Context(), e.Computer.ID))
	want := controlapi.Visitor{
		AccountID: e.AccountID, Email: "maya@example.com", Role: controlapi.RoleOwner, AppID: "app1",
		Epoch: snapshot.People[0].Epoch,
	}
	if got != want {
		t.Errorf("the visitor is %+v, want %+v", got, want)
	}
}

// A computer is told how whoever comes showed who they are, which is by mail where a session
// of before does not say.
func TestVisitorIsProven(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.run()
	b.apps(e, "app1")
	maya := ok[Account](t)(b.Accounts.ByEmail(t.Context(), "maya@example.com"))
	_, link, _ := b.begin("maya@example.com", 1)
	tokens := map[controlapi.Proof][]string{
		controlapi.ProofPasskey: {ok[SignedIn](t)(b.uses(b.passkey(maya))).Token},
		controlapi.ProofMail:    {ok[SignedIn](t)(b.SignIn.WithLink(t.Context(), link, "", home)).Token, b.session("before", e.AccountID)},
	}
	at := b.clock.Now().UTC()
	b.clock.Add(2 * sessionSlide) // using one writes it anew
	for proof, all := range tokens {
		for _, token := range all {
			session := ok[Session](t)(b.Sessions.Of(t.Context(), token))
			if session.Proof != proof || !session.Proven.Equal(at) || !session.Renewed {
				t.Errorf("a session of %s is %+v", proof, session)
			}
			to := ok[string](t)(b.Visits.Begin(t.Context(), ok[VisitRequest](t)(b.Visits.Parse(t.Context(), visitQuery("app", "app1"))), session))
			visitor := ok[controlapi.Visitor](t)(b.Visits.Redeem(t.Context(), e.Computer.ID,
				controlapi.Redeem{Code: ok[*url.URL](t)(url.Parse(to)).Query().Get("code"), CodeVerifier: theVerifier, RedirectURI: callback}))
			if visitor.Proof != proof {
				t.Errorf("told of %+v, want %s", visitor, proof)
			}
		}
	}
}

// Who signed in by a way that will not do for an app gets no code there, and a way that
// is not known lets nobody in. Strangers hear nothing of it.
func TestVisitAsksForAProof(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	maya := ok[Account](t)(b.Accounts.ByEmail(t.Context(), e.Email))
	stranger := ok[Account](t)(b.Accounts.Ensure(t.Context(), "eve@example.com"))
	visit := func(proof string, session Session) error {
		t.Helper()
		_, err := b.Visits.Begin(t.Context(), ok[VisitRequest](t)(b.Visits.Parse(t.Context(), visitQuery("app", "app1", "proof", proof))), session)
		return err
	}
	for proof, may := range map[controlapi.Proof]string{
		controlapi.ProofPasskey: "passkey", controlapi.ProofCode: "passkey,code", controlapi.ProofProvider: "later,provider", controlapi.ProofMail: "mail,passkey",
	} {
		programs.Must(t, visit(may, Session{Account: maya, Proof: proof}))
		programs.Must(t, visit(may, Session{Account: maya, Proof: proof}))
		wantRefusal(t, visit(may, Session{Account: stranger, Proof: proof}), controlapi.CodeForbidden)
	}
	before := b.rows("visit/")
	for proof, not := range map[controlapi.Proof]string{
		controlapi.ProofMail: "passkey", controlapi.ProofCode: "passkey,provider", controlapi.ProofProvider: "passkey,code", "": "mail", controlapi.ProofPasskey: "code",
	} {
		if err := visit(not, Session{Account: maya, Proof: proof}); !errors.Is(err, ErrProof) {
			t.Errorf("%q where %q will do: %v", proof, not, err)
		}
		wantRefusal(t, visit(not, Session{Account: stranger, Proof: proof}), controlapi.CodeForbidden)
	}
	if b.rows("visit/") != before {
		t.Error("there is a code")
	}
	for _, wrong := range []string{"", "later", "Passkey", "passkey "} {
		_, err := b.Visits.Parse(t.Context(), visitQuery("app", "app1", "proof", wrong))
		wantRefusal(t, err, controlapi.CodeInvalid)
	}
	_, err := b.Visits.Parse(t.Context(), visitQuery("app", "app1", "proof", "passkey")+"&proof=mail")
	wantRefusal(t, err, controlapi.CodeInvalid)
}

// The owner's computer is told by which of their browsers they come, and can sign that one
// out; of nobody else's.
func TestOwnersBrowserIsToldAndEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	bob := b.joined(e.Computer.ID, "bob@example.com", "app1")
	come := func(account, id string) (token string, visitor controlapi.Visitor) {
		t.Helper()
		token = b.session(id, account)
		session := ok[Session](t)(b.Sessions.Of(t.Context(), token))
		u := ok[*url.URL](t)(url.Parse(ok[string](t)(b.Visits.Begin(t.Context(), ok[VisitRequest](t)(b.Visits.Parse(t.Context(), visitQuery("app", "app1"))), session))))
		return token, ok[controlapi.Visitor](t)(b.Visits.Redeem(t.Context(), e.Computer.ID,
			controlapi.Redeem{Code: u.Query().Get("code"), CodeVerifier: theVerifier, RedirectURI: callback}))
	}
	lost, visitor := come(e.AccountID, "lost")
	kept, _ := come(e.AccountID, "kept")
	bobs, his := come(bob.ID, "bobs")
	if visitor.Browser != "lost" || visitor.Client != home.String() || his.Browser != "" || his.Client != "" {
		t.Errorf("told of %+v and %+v", visitor, his)
	}
	for _, id := range []string{"lost", "lost", "bobs"} {
		programs.Must(t, b.Sessions.EndForComputer(t.Context(), e.Computer.ID, controlapi.EndBrowser{ID: id}))
	}
	if _, err := b.Sessions.Of(t.Context(), lost); !IsRefusal(err, controlapi.CodeUnauthorized) {
		t.Errorf("it is signed in: %v", err)
	}
	for _, token := range []string{kept, bobs} {
		ok[Session](t)(b.Sessions.Of(t.Context(), token))
	}
	if epoch := b.rowOf(e.Computer.ID, e.AccountID).Epoch; epoch <= visitor.Epoch {
		t.Errorf("its sessions at apps go on: epoch %d, was %d", epoch, visitor.Epoch)
	}
}

// Weakness: a visit read computer, person and apps one after the other, and each was a
// round trip where the database is elsewhere.
func TestAVisitReadsTwice(t *testing.T) {
	t.Parallel()
	store := &counting{}
	b := newBench(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	e := b.owner()
	b.apps(e, "app1")
	store.reads = 0
	b.codeFor(Account{ID: e.AccountID, Email: e.Email}, visitQuery("app", "app1"))
	if store.reads != 2 {
		t.Errorf("a visit is begun with %d reads", store.reads)
	}
}

func TestVisitToTheLauncher(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	owner := Account{ID: e.AccountID}
	for _, host := range []string{"maya.localhost:8443", "portal.maya.localhost:8443"} {
		b.codeFor(owner, visitQuery("app", "-", "redirect_uri", "https://"+host+controlapi.CallbackPath))
		b.codeFor(owner, visitQuery("app", "", "redirect_uri", "https://"+host+controlapi.CallbackPath))
	}
}

// Weakness: an owner lures a signed-in stranger to an address of theirs to
// learn who they are, or a stranger asks for addresses to learn which exist.
// Checked: the same refusal for everything, and no code.
func TestVisitRefusesAlike(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	programs.Must(t, b.Agents.PutApps(t.Context(), e.Computer.ID, controlapi.Apps{Apps: []controlapi.App{
		{ID: "app1", Name: "notes", Label: "Notes", Live: true},
		{ID: "app2", Name: "photos", Label: "Photos", Live: true},
		{ID: "app3", Name: "stopped", Label: "Stopped"},
	}}))
	invited := ok[controlapi.Person](t)(b.People.Invite(t.Context(), e.Computer.ID, controlapi.Invite{Email: "pending@example.com", Apps: []string{"app1"}}))
	member := b.joined(e.Computer.ID, "member@example.com", "app1")
	removed := b.joined(e.Computer.ID, "removed@example.com", "app1")
	ok[controlapi.Person](t)(b.People.Remove(t.Context(), e.Computer.ID, controlapi.Remove{AccountID: removed.ID}))
	stranger := ok[Account](t)(b.Accounts.Ensure(t.Context(), "stranger@example.com"))

	at := func(name string) string {
		return "https://" + name + ".maya.localhost:8443" + controlapi.CallbackPath
	}
	b.codeFor(member, visitQuery())
	tests := map[string]struct{ account, query string }{
		"stranger":                   {stranger.ID, visitQuery()},
		"stranger to the launcher":   {stranger.ID, visitQuery("app", "-", "redirect_uri", "https://maya.localhost:8443"+controlapi.CallbackPath)},
		"invited, not accepted":      {invited.AccountID, visitQuery()},
		"removed":                    {removed.ID, visitQuery()},
		"member without the app":     {member.ID, visitQuery("app", "app2", "redirect_uri", at("photos"))},
		"no such computer":           {stranger.ID, visitQuery("computer", "nobody", "redirect_uri", "https://notes.nobody.localhost:8443"+controlapi.CallbackPath)},
		"no such app":                {e.AccountID, visitQuery("app", "app9")},
		"stopped app":                {e.AccountID, visitQuery("app", "app3", "redirect_uri", at("stopped"))},
		"another app's host":         {e.AccountID, visitQuery("app", "app1", "redirect_uri", at("photos"))},
		"an app at the root host":    {e.AccountID, visitQuery("redirect_uri", "https://maya.localhost:8443"+controlapi.CallbackPath)},
		"the launcher at an app":     {e.AccountID, visitQuery("app", "-")},
		"an app at the portal's":     {e.AccountID, visitQuery("redirect_uri", at("portal"))},
		"a name that is not one yet": {e.AccountID, visitQuery("redirect_uri", at("later"))},
	}
	sentences := map[string]bool{}
	for name, tt := range tests {
		before := b.rows("visit/")
		v := ok[VisitRequest](t)(b.Visits.Parse(t.Context(), tt.query))
		to, err := b.Visits.Begin(t.Context(), v, Session{Account: Account{ID: tt.account}})
		if !IsRefusal(err, controlapi.CodeForbidden) || to != "" {
			t.Errorf("%s: got %q, %v", name, to, err)
			continue
		}
		sentences[err.Error()] = true
		if b.rows("visit/") != before {
			t.Errorf("%s: a code was written", name)
		}
	}
	if len(sentences) != 1 {
		t.Errorf("the refusals differ: %v", sentences)
	}
}

func TestParseVisitRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("x", 513)
	tests := map[string]string{
		"nothing":               "",
		"bad escape":            "computer=%zz",
		"no computer":           visitQuery("computer", "-"),
		"computer twice":        visitQuery() + "&computer=maya",
		"app twice":             visitQuery() + "&app=app1",
		"redirect_uri twice":    visitQuery() + "&redirect_uri=" + url.QueryEscape(callback),
		"reserved computer":     visitQuery("computer", "www", "redirect_uri", "https://notes.www.localhost:8443"+controlapi.CallbackPath),
		"our own host":          visitQuery("computer", "control", "redirect_uri", "https://notes.control.localhost:8443"+controlapi.CallbackPath),
		"upper case computer":   visitQuery("computer", "Maya"),
		"http":                  visitQuery("redirect_uri", "http://notes.maya.localhost:8443"+controlapi.CallbackPath),
		"another site":          visitQuery("redirect_uri", "https://evil.example"+controlapi.CallbackPath),
		"another computer":      visitQuery("redirect_uri", "https://notes.bob.localhost:8443"+controlapi.CallbackPath),
		"our name as user":      visitQuery("redirect_uri", "https://maya.localhost:8443@evil.example"+controlapi.CallbackPath),
		"ends like ours":        visitQuery("redirect_uri", "https://evilmaya.localhost:8443"+controlapi.CallbackPath),
		"two labels":            visitQuery("redirect_uri", "https://a.notes.maya.localhost:8443"+controlapi.CallbackPath),
		"slash in the host":     visitQuery("redirect_uri", "https://evil.example/.maya.localhost:8443"+controlapi.CallbackPath),
		"space in the host":     visitQuery("redirect_uri", "https://a b.maya.localhost:8443"+controlapi.CallbackPath),
		"semicolon in the host": visitQuery("redirect_uri", "https://a;b.maya.localhost:8443"+controlapi.CallbackPath),
		"no port":               visitQuery("redirect_uri", "https://notes.maya.localhost"+controlapi.CallbackPath),
		"another path":          visitQuery("redirect_uri", "https://notes.maya.localhost:8443/"),
		"a query":               visitQuery("redirect_uri", callback+"?x"),
		"a fragment":            visitQuery("redirect_uri", callback+"#x"),
		"no state":              visitQuery("state", "-"),
		"empty state":           visitQuery("state", ""),
		"long state":            visitQuery("state", long),
		"line break in state":   visitQuery("state", "a\r\nb"),
		"no challenge":          visitQuery("code_challenge", "-"),
		"short challenge":       visitQuery("code_challenge", "abc"),
		"plain":                 visitQuery("code_challenge_method", "plain"),
		"no method":             visitQuery("code_challenge_method", "-"),
		"bad app":               visitQuery("app", "../x"),
		"long":                  visitQuery() + "&x=" + strings.Repeat("x", maxVisitQuery),
	}
	for name, query := range tests {
		if v, err := b.Visits.Parse(t.Context(), query); !IsRefusal(err, controlapi.CodeInvalid) {
			t.Errorf("%s: got %+v, %v", name, v, err)
		}
	}
}

func TestRedeemRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	other := ok[controlapi.Enrolled](t)(b.Computers.Ensure(t.Context(), "bob@example.com", "bob"))
	redeem := func(computer string, r controlapi.Redeem) error {
		_, err := b.Visits.Redeem(t.Context(), computer, r)
		return err
	}
	fresh := func() controlapi.Redeem {
		code, verifier := b.visitFor(e, "app1")
		return controlapi.Redeem{Code: code, CodeVerifier: verifier, RedirectURI: callback}
	}
	me := e.Computer.ID

	wrong := fresh()
	wrong.CodeVerifier = strings.Repeat("a", 43)
	wantRefusal(t, redeem(me, wrong), controlapi.CodeInvalidGrant)
	wrong.CodeVerifier = theVerifier
	wantRefusal(t, redeem(me, wrong), controlapi.CodeInvalidGrant) // used up by the wrong one

	wrong = fresh()
	wrong.RedirectURI = strings.Replace(callback, "notes", "photos", 1)
	wantRefusal(t, redeem(me, wrong), controlapi.CodeInvalidGrant)

	// Another computer can neither use a code nor use it up.
	r := fresh()
	wantRefusal(t, redeem(other.Computer.ID, r), controlapi.CodeInvalidGrant)
	if err := redeem(me, r); err != nil {
		t.Errorf("after another computer tried: %v", err)
	}
	wantRefusal(t, redeem(me, r), controlapi.CodeInvalidGrant)

	r = fresh()
	b.clock.Add(59 * time.Second)
	if err := redeem(me, r); err != nil {
		t.Errorf("within a minute: %v", err)
	}
	r = fresh()
	b.clock.Add(60 * time.Second)
	wantRefusal(t, redeem(me, r), controlapi.CodeInvalidGrant)

	for _, r := range []controlapi.Redeem{{}, {Code: aSecret()}, {Code: aSecret(), CodeVerifier: theVerifier, RedirectURI: callback}} {
		wantRefusal(t, redeem(me, r), controlapi.CodeInvalidGrant)
	}
}

func TestRedeemAfterAccessEnded(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*bench, string, string) error{
		"withdrawn": func(b *bench, c, a string) error {
			_, err := b.People.SetAccess(t.Context(), c, controlapi.SetAccess{AccountID: a, App: "app1"})
			return err
		},
		"revoked": func(b *bench, c, a string) error {
			_, err := b.People.Remove(t.Context(), c, controlapi.Remove{AccountID: a})
			return err
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			e := b.owner()
			b.apps(e, "app1")
			p := b.joined(e.Computer.ID, "bob@example.com", "app1")
			code := b.codeFor(p, visitQuery())
			programs.Must(t, end(b, e.Computer.ID, p.ID))
			_, err := b.Visits.Redeem(t.Context(), e.Computer.ID, controlapi.Redeem{Code: code, CodeVerifier: theVerifier, RedirectURI: callback})
			wantRefusal(t, err, controlapi.CodeInvalidGrant)
		})
	}
}

func TestVisitsArePaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := b.owner()
	b.apps(e, "app1")
	v := ok[VisitRequest](t)(b.Visits.Parse(t.Context(), visitQuery()))
	account := Account{ID: e.AccountID}
	var err error
	for range 301 {
		if _, err = b.Visits.Begin(t.Context(), v, Session{Account: account}); err != nil {
			break
		}
	}
	wantRefusal(t, err, controlapi.CodeTooMany)
	b.clock.Add(time.Minute)
	ok[string](t)(b.Visits.Begin(t.Context(), v, Session{Account: account}))
}

func FuzzParseVisit(f *testing.F) {
	f.Add(visitQuery())
	f.Add(visitQuery("app", "-", "redirect_uri", "https://maya.localhost:8443"+controlapi.CallbackPath))
	f.Add(visitQuery("redirect_uri", "https://evil.example/.maya.localhost:8443"+controlapi.CallbackPath))
	f.Add("computer=maya&computer=maya&redirect_uri=%00")
	b := newBench(f)
	f.Fuzz(func(t *testing.T, query string) {
		v, err := b.Visits.Parse(t.Context(), query)
		if err != nil {
			return
		}
		// Whatever is accepted leads to a host of the computer and nowhere else.
		u, err := url.Parse(v.RedirectURI)
		if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			u.Path != controlapi.CallbackPath || u.Host != v.Host ||
			!strings.HasSuffix("."+u.Hostname(), "."+v.Computer+".localhost") || u.Port() != "8443" {
			t.Fatalf("accepted %+v", v)
		}
		if strings.ContainsAny(v.Origin(), " ;,'\"\r\n") {
			t.Fatalf("the origin %q does not fit into a policy", v.Origin())
		}
	})
}
