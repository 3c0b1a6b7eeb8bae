package control

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"porchlight/control/controlapi"
	"porchlight/control/feed"
	"porchlight/test/authenticator"
	"porchlight/test/programs"
)

// lived is a control plane on a breaking store where everything is that one can do
// something with.
type lived struct {
	*bench
	store            *breaking
	e                controlapi.Enrolled // maya's, with app1 and app2
	maya, bob, carol Account             // bob is active on app1, carol is invited to it
	signedIn         string              // session token of bob's
	link, name       string              // of carol's invitation
	client           registered
	code, used       string // of a client that bob lets in: for a grant, and exchanged for one
	refresh          string // of another grant
	visit            string
	password         string // id of one of bob's
	knock            string // id of dave's, who is not on the list
	dave, erin       knocker
	mail             attempt // of maya, who signs in
	browser          string  // where she does
	enrolling        enrolling
	confirmed        enrolling
	passkeyID        string     // of one of bob's
	adding, leaving  Session    // in which he adds another
	in               Session    // of bob, just begun
	added            NewPasskey // which is that
	touch, copied    PasskeyUse // of his, and of one that was copied
	frank            Session    // by a passkey, of who turned mail off
	recovery, stop   string     // a code of frank's, and what stops the recovery that the operator began
}

func newLived(t *testing.T) *lived {
	t.Helper()
	l := &lived{store: &breaking{}}
	l.bench = newBench(t, func(c *Config) {
		l.store.Store, c.Store = c.Store, l.store
		c.Tell = func([]string) { l.store.done("others are told") }
		editors, keys := newEditors(), keySet(t, nil, "ES256")
		c.Fetch = func(ctx context.Context, address string) ([]byte, time.Duration, error) {
			if strings.HasSuffix(address, "/keys") {
				return keys, time.Hour, nil
			}
			return editors.fetch(ctx, address)
		}
		c.OnCredentialEnded = func(string) { l.store.done("a tunnel is ended") }
	})
	l.e = l.owner()
	l.reports(l.e, controlapi.KnocksFromEverybody, "app1", "app2")
	l.maya = Account{ID: l.e.AccountID, Email: l.e.Email}
	l.bob = l.joined(l.e.Computer.ID, bob, "app1")
	l.signedIn = l.session("", l.bob.ID)
	carol := ok[controlapi.Person](t)(l.People.Invite(t.Context(), l.e.Computer.ID, controlapi.Invite{Email: "carol@example.com", Apps: []string{"app1"}}))
	l.carol, l.link = Account{ID: carol.AccountID, Email: carol.Email}, l.invitation(carol.Email)
	l.name = nameOf(t, ok[controlapi.InvitationLink](t)(l.People.Link(t.Context(), l.e.Computer.ID, controlapi.LinkWanted{AccountID: carol.AccountID})))
	l.client = l.registered()
	programs.Must(t, l.Clients.Allow(t.Context(), editorHost, "assistant.example"))
	l.putSigner(document{JWKSURI: "https://assistant.example/keys"})
	programs.Must(t, l.Clients.Describe(t.Context(), l.bob.ID, editorID))
	l.refresh = l.client.granted(l.bob, "maya").Refresh
	l.code, l.used = ok[string](t)(l.client.code(l.bob, "maya")), ok[string](t)(l.client.code(l.bob, "maya"))
	ok[Tokens](t)(l.client.exchange(l.used))
	l.visit = l.codeFor(l.bob, visitQuery())
	l.in = l.newSession(l.bob)
	made := ok[MadePassword](t)(l.Passwords.Make(t.Context(), l.in, NewPassword{Computer: "maya", AppID: "app1", Name: "calendar", Form: l.Passwords.NewForm()}))
	l.password = made.ID
	plain, counts := l.passkey(l.bob), authenticator.New(t, passkeyOrigin, "control.localhost")
	l.passkeyID = ok[[]Passkey](t)(l.Passkeys.Of(t.Context(), l.bob.ID))[0].ID
	counts.Count = 1
	programs.Must(t, l.adds(l.bob, counts))
	use := func(p *authenticator.Passkey) PasskeyUse {
		options, state := l.begunUse()
		return PasskeyUse{State: state, Answer: p.Use(t, options), Client: home}
	}
	earlier := *counts
	ok[SignedIn](t)(l.uses(counts))
	l.touch, l.copied = use(plain), use(&earlier)
	l.adding, l.leaving = l.newSession(l.bob), l.newSession(l.bob)
	options, state, err := l.Passkeys.BeginAdd(t.Context(), l.adding)
	programs.Must(t, err)
	l.added = NewPasskey{State: state, Answer: authenticator.New(t, passkeyOrigin, "control.localhost").Make(t, options), Name: "Mac"}
	l.dave, l.erin = l.knocker("dave@example.com"), l.knocker("erin@example.com")
	programs.Must(t, l.dave.ask(door("app2")))
	l.knock = l.told(l.e)[0].ID
	l.clock.Add(time.Second)
	programs.Must(t, l.erin.ask(door("app2")))
	ok[controlapi.Person](t)(l.answer(l.e, l.told(l.e)[1].ID, controlapi.KnockYes, ""))
	l.browser = ok[string](t)(l.SignIn.Begin(t.Context(), l.e.Email, Browser{Client: home}, ""))
	l.mail = <-l.SignIn.attempts
	l.SignIn.write(t.Context(), l.mail)
	franks := ok[Account](t)(l.Accounts.Ensure(t.Context(), "frank@example.com"))
	key, codes := l.mailOff(franks)
	l.frank, l.recovery = l.strongly(key), codes[0]
	l.clock.Add(time.Millisecond) // so that mails have an order
	ok[time.Time](t)(l.Recovery.Begin(t.Context(), franks.Email))
	l.stop = ok[*url.URL](t)(url.Parse(l.newest(franks.Email).Links[0])).Query().Get("token")
	l.enrolling, l.confirmed = l.bench.enrolling(), l.bench.enrolling()
	ok[Confirmed](t)(l.confirmed.confirm("loft", false))
	ok[controlapi.Person](t)(l.People.SetAccess(t.Context(), l.e.Computer.ID, controlapi.SetAccess{AccountID: l.bob.ID, App: "app2", Granted: true, Until: rfc(l.clock.Now().Add(time.Hour))}))
	return l
}

// calls are what others ask of the service. Each is called until the store has broken at
// each of its calls once.
var calls = map[string]func(*lived, context.Context) (any, error){
	"Accounts.ByEmail": func(l *lived, ctx context.Context) (any, error) { return l.Accounts.ByEmail(ctx, bob) },
	"Accounts.Ensure":  func(l *lived, ctx context.Context) (any, error) { return l.Accounts.Ensure(ctx, "new@example.com") },
	"Accounts.List":    func(l *lived, ctx context.Context) (any, error) { return l.Accounts.List(ctx) },
	"Accounts.Remove":  func(l *lived, ctx context.Context) (any, error) { return nil, l.Accounts.Remove(ctx, bob) },
	"Accounts.Remove of an owner": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Accounts.Remove(ctx, l.e.Email)
	},

	"Accounts.Delete": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Accounts.Delete(ctx, l.leaving, Asker{Client: home})
	},
	"Accounts.Export": func(l *lived, ctx context.Context) (any, error) { return l.Accounts.Export(ctx, l.leaving) },

	"SignIn.Begin": func(l *lived, ctx context.Context) (any, error) {
		return l.SignIn.Begin(ctx, bob, Browser{Client: home}, "")
	},
	"SignIn.LookAtLink": func(l *lived, ctx context.Context) (any, error) {
		return l.SignIn.LookAtLink(ctx, l.mail.link, "")
	},
	"SignIn.WithLink": func(l *lived, ctx context.Context) (any, error) { return l.SignIn.WithLink(ctx, l.mail.link, "", home) },

	"SignIn.WithCode": func(l *lived, ctx context.Context) (any, error) {
		return l.SignIn.WithCode(ctx, l.browser, l.mail.code, home)
	},
	"SignIn.WithCode, a wrong one": func(l *lived, ctx context.Context) (any, error) {
		out, err := l.SignIn.WithCode(ctx, l.browser, "no", home)
		return out, unless(err, controlapi.CodeForbidden)
	},
	"SignIn.write": func(l *lived, ctx context.Context) (any, error) {
		if l.SignIn.write(ctx, l.mail); l.store.broke {
			return nil, errBroken
		}
		return nil, nil
	},

	"Sessions.Of":      func(l *lived, ctx context.Context) (any, error) { return l.Sessions.Of(ctx, l.signedIn) },
	"Sessions.For":     func(l *lived, ctx context.Context) (any, error) { return l.Sessions.For(ctx, l.signedIn, "maya") },
	"Sessions.List":    func(l *lived, ctx context.Context) (any, error) { return l.Sessions.List(ctx, l.bob.ID) },
	"Sessions.SignOut": func(l *lived, ctx context.Context) (any, error) { return nil, l.Sessions.SignOut(ctx, l.signedIn) },
	"Sessions.EndForComputer": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Sessions.EndForComputer(ctx, l.e.Computer.ID, controlapi.EndBrowser{ID: l.dave.ID})
	},
	"Sessions.End": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Sessions.End(ctx, l.dave.Account.ID, l.dave.ID)
	},
	"SignOutEverywhere": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Sessions.SignOutEverywhere(ctx, l.bob.ID)
	},
	"Sessions.Of, which is renewed": func(l *lived, ctx context.Context) (any, error) {
		l.clock.Add(2 * sessionSlide)
		return l.Sessions.Of(ctx, l.signedIn)
	},

	"Computers.Ensure": func(l *lived, ctx context.Context) (any, error) {
		return l.Computers.Ensure(ctx, "new@example.com", "study")
	},
	"Computers.Ensure again": func(l *lived, ctx context.Context) (any, error) { return l.Computers.Ensure(ctx, l.e.Email, "maya") },
	"Computers.ByName":       func(l *lived, ctx context.Context) (any, error) { return l.Computers.ByName(ctx, "maya") },
	"Computers.List":         func(l *lived, ctx context.Context) (any, error) { return l.Computers.List(ctx) },
	"Computers.Own":          func(l *lived, ctx context.Context) (any, error) { return l.Computers.Own(ctx, l.maya.ID) },
	"Computers.Disconnect": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Computers.Disconnect(ctx, l.maya.ID, "maya")
	},
	"Computers.Remove": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Computers.Remove(ctx, l.maya.ID, "maya")
	},
	"Computers.BeginLine": func(l *lived, ctx context.Context) (any, error) { return nil, l.Computers.BeginLine(ctx) },

	"Enrolment.Begin": func(l *lived, ctx context.Context) (any, error) {
		return l.Enrolment.Begin(ctx, controlapi.EnrolRequest{Platform: "linux"}, home)
	},
	"Enrolment.LookAt": func(l *lived, ctx context.Context) (any, error) {
		return l.Enrolment.LookAt(ctx, l.enrolling.session.Account, l.enrolling.started.UserCode, home)
	},
	"Enrolment.LookAt, a wrong code": func(l *lived, ctx context.Context) (any, error) {
		out, err := l.Enrolment.LookAt(ctx, l.enrolling.session.Account, "BBBB-BBBB", home)
		return out, unless(err, controlapi.CodeNotFound)
	},
	"Enrolment.Confirm": func(l *lived, _ context.Context) (any, error) { return l.enrolling.confirm("study", false) },
	"Enrolment.Deny": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Enrolment.Deny(ctx, l.enrolling.session.Account, l.enrolling.started.UserCode, home)
	},
	"Enrolment.Poll": func(l *lived, _ context.Context) (any, error) { return l.confirmed.poll() },
	"Enrolment.Poll, not confirmed": func(l *lived, _ context.Context) (any, error) {
		out, err := l.enrolling.poll()
		return out, unless(err, controlapi.CodeAuthorizationPending)
	},

	"Agents.Authenticate": func(l *lived, ctx context.Context) (any, error) { return l.Agents.Authenticate(ctx, l.e.Credential) },
	"Agents.EndCredential": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Agents.EndCredential(ctx, l.e.Credential)
	},
	"Agents.nextSnapshot": func(l *lived, ctx context.Context) (any, error) {
		return l.Agents.nextSnapshot(ctx, feed.Credential{Hash: hashOf(purposeCredential, l.e.Credential), Computer: l.e.Computer.ID})
	},
	"Agents.PutApps": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Agents.PutApps(ctx, l.e.Computer.ID, controlapi.Apps{Knocks: controlapi.KnocksFromNobody})
	},

	"Recovery.MakeCodes": func(l *lived, ctx context.Context) (any, error) {
		return l.Recovery.MakeCodes(ctx, l.frank, true, Asker{})
	},
	"Recovery.MailOn": func(l *lived, ctx context.Context) (any, error) { return nil, l.Recovery.MailOn(ctx, l.frank, Asker{}) },
	"Recovery.Left":   func(l *lived, ctx context.Context) (any, error) { return l.Recovery.Left(ctx, l.frank.Account) },
	"Recovery.WithCode": func(l *lived, ctx context.Context) (any, error) {
		return l.Recovery.WithCode(ctx, RecoveryUse{Email: l.frank.Account.Email, Code: l.recovery})
	},
	"Recovery.WithCode, a wrong one": func(l *lived, ctx context.Context) (any, error) {
		out, err := l.Recovery.WithCode(ctx, RecoveryUse{Email: l.frank.Account.Email})
		return out, unless(err, controlapi.CodeForbidden)
	},
	"Recovery.Link": func(l *lived, ctx context.Context) (any, error) {
		return l.Recovery.Link(ctx, l.e.Computer.ID, controlapi.LinkForOwner{})
	},
	"Recovery.Begin":      func(l *lived, ctx context.Context) (any, error) { return l.Recovery.Begin(ctx, l.frank.Account.Email) },
	"Recovery.LookAtStop": func(l *lived, ctx context.Context) (any, error) { return l.Recovery.LookAtStop(ctx, l.stop) },
	"Recovery.Stop":       func(l *lived, ctx context.Context) (any, error) { return nil, l.Recovery.Stop(ctx, l.stop) },
	"Recovery.recover": func(l *lived, ctx context.Context) (any, error) {
		l.clock.Add(RecoverIn)
		return nil, l.Recovery.recover(ctx, l.frank.Account.ID)
	},

	"People.List": func(l *lived, ctx context.Context) (any, error) { return l.People.List(ctx, l.e.Computer.ID) },
	"People.Invite": func(l *lived, ctx context.Context) (any, error) {
		return l.People.Invite(ctx, l.e.Computer.ID, controlapi.Invite{Email: "new@example.com", Apps: []string{"app1", "app2"}})
	},
	"People.LookAtInvitation": func(l *lived, ctx context.Context) (any, error) {
		return l.People.LookAtInvitation(ctx, l.link, l.signedIn)
	},
	"People.AcceptInvitation": func(l *lived, ctx context.Context) (any, error) {
		return l.People.AcceptInvitation(ctx, l.link, l.signedIn, home)
	},
	"People.Link": func(l *lived, ctx context.Context) (any, error) {
		return l.People.Link(ctx, l.e.Computer.ID, controlapi.LinkWanted{AccountID: l.carol.ID})
	},
	"People.LookAtNamed": func(l *lived, ctx context.Context) (any, error) {
		return l.People.LookAtNamed(ctx, l.name, l.carol.ID, "")
	},
	"People.AcceptNamed": func(l *lived, ctx context.Context) (any, error) { return l.People.AcceptNamed(ctx, l.name, l.carol.ID) },
	"People.endDue": func(l *lived, ctx context.Context) (any, error) {
		l.clock.Add(2 * time.Hour)
		wait, err := l.People.endDue(ctx)
		return wait, err
	},
	"People.SetAccess, given": func(l *lived, ctx context.Context) (any, error) {
		return l.People.SetAccess(ctx, l.e.Computer.ID, controlapi.SetAccess{AccountID: l.bob.ID, App: "app2", Granted: true, Until: rfc(l.clock.Now().Add(time.Hour))})
	},
	"People.SetAccess, taken away": func(l *lived, ctx context.Context) (any, error) {
		return l.People.SetAccess(ctx, l.e.Computer.ID, controlapi.SetAccess{AccountID: l.bob.ID, App: "app1"})
	},
	"People.Remove": func(l *lived, ctx context.Context) (any, error) {
		return l.People.Remove(ctx, l.e.Computer.ID, controlapi.Remove{AccountID: l.bob.ID})
	},
	"People.Remove, undone": func(l *lived, ctx context.Context) (any, error) {
		return l.People.Remove(ctx, l.e.Computer.ID, controlapi.Remove{AccountID: l.carol.ID, Undo: true})
	},
	"People.Memberships": func(l *lived, ctx context.Context) (any, error) { return l.People.Memberships(ctx, l.carol.ID) },
	"People.Leave":       func(l *lived, ctx context.Context) (any, error) { return nil, l.People.Leave(ctx, l.bob.ID, "maya") },

	"Visits.Begin": func(l *lived, ctx context.Context) (any, error) {
		v, err := l.Visits.Parse(ctx, visitQuery())
		if err != nil {
			return nil, err
		}
		return l.Visits.Begin(ctx, v, Session{Account: l.bob})
	},
	"Visits.Redeem": func(l *lived, ctx context.Context) (any, error) {
		return l.Visits.Redeem(ctx, l.e.Computer.ID, controlapi.Redeem{Code: l.visit, CodeVerifier: theVerifier, RedirectURI: callback})
	},
	"Visits.Redeem, a wrong verifier": func(l *lived, ctx context.Context) (any, error) {
		out, err := l.Visits.Redeem(ctx, l.e.Computer.ID, controlapi.Redeem{Code: l.visit, CodeVerifier: proof, RedirectURI: callback})
		return out, unless(err, controlapi.CodeInvalidGrant)
	},

	"Clients.Add": func(l *lived, ctx context.Context) (any, error) {
		_, secret, err := l.Clients.Add(ctx, "Another", []string{appRedirect})
		return secret, err
	},
	"Clients.Allow":    func(l *lived, ctx context.Context) (any, error) { return nil, l.Clients.Allow(ctx, "other.example") },
	"Clients.Disallow": func(l *lived, ctx context.Context) (any, error) { return nil, l.Clients.Disallow(ctx, editorHost) },
	"Clients.AllowOnly": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Clients.AllowOnly(ctx, []string{"other.example"})
	},
	"Clients.Hosts": func(l *lived, ctx context.Context) (any, error) { return l.Clients.Hosts(ctx) },
	"Clients.MayDescribe": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Clients.MayDescribe(ctx, editorID)
	},
	"Clients.Describe": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Clients.Describe(ctx, anID(), "https://"+editorHost+"/new")
	},
	"Clients.List":   func(l *lived, ctx context.Context) (any, error) { return l.Clients.List(ctx) },
	"Clients.Rotate": func(l *lived, ctx context.Context) (any, error) { return l.Clients.Rotate(ctx, l.client.ID) },
	"Clients.Remove": func(l *lived, ctx context.Context) (any, error) { return nil, l.Clients.Remove(ctx, l.client.ID) },
	"Clients.For":    func(l *lived, ctx context.Context) (any, error) { return l.Clients.For(ctx, l.client.ID, appRedirect) },
	"Clients.Authenticate": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Clients.Authenticate(ctx, l.client.Credentials)
	},
	"Clients.Authenticate, by an assertion": func(l *lived, ctx context.Context) (any, error) {
		l.untilKeysAreRead()
		return nil, l.Clients.Authenticate(ctx, l.signedBy("ES256"))
	},

	"Grants.Authorize":  func(l *lived, _ context.Context) (any, error) { return l.client.code(l.bob, "maya") },
	"Grants.Exchange":   func(l *lived, _ context.Context) (any, error) { return l.client.exchange(l.code) },
	"Grants.Refresh":    func(l *lived, _ context.Context) (any, error) { return l.client.use(l.refresh) },
	"Grants.OfAccount":  func(l *lived, ctx context.Context) (any, error) { return l.Grants.OfAccount(ctx, l.bob.ID) },
	"Grants.OfComputer": func(l *lived, ctx context.Context) (any, error) { return l.Grants.OfComputer(ctx, l.e.Computer.ID) },
	"Grants.Exchange, used twice": func(l *lived, _ context.Context) (any, error) {
		out, err := l.client.exchange(l.used)
		return out, unless(err, controlapi.CodeInvalidGrant)
	},
	"Grants.RevokeForAccount": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Grants.RevokeForAccount(ctx, l.bob.ID, grantID(l.refresh))
	},
	"Grants.RevokeForComputer": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Grants.RevokeForComputer(ctx, l.e.Computer.ID, controlapi.RevokeGrant{ID: grantID(l.refresh)})
	},

	"Passwords.Make": func(l *lived, ctx context.Context) (any, error) {
		return l.Passwords.Make(ctx, l.in, NewPassword{Computer: "maya", AppID: "app1", Name: "phone", Form: l.Passwords.NewForm()})
	},
	"Passwords.MakeForOwner": func(l *lived, ctx context.Context) (any, error) {
		return l.Passwords.MakeForOwner(ctx, l.e.Computer.ID, controlapi.MakePassword{App: "app1", Name: "phone"})
	},
	"Passwords.OfComputer": func(l *lived, ctx context.Context) (any, error) { return l.Passwords.OfComputer(ctx, l.e.Computer.ID) },
	"Passwords.Of":         func(l *lived, ctx context.Context) (any, error) { return l.Passwords.Of(ctx, l.in, "") },
	"Passwords.Count":      func(l *lived, ctx context.Context) (any, error) { return l.Passwords.Count(ctx, l.bob.ID) },
	"Passwords.Revoke": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Passwords.Revoke(ctx, l.bob.ID, "maya", l.password)
	},
	"Passwords.RevokeAll": func(l *lived, ctx context.Context) (any, error) { return nil, l.Passwords.RevokeAll(ctx, l.bob.ID) },
	"Passwords.RevokeForComputer": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Passwords.RevokeForComputer(ctx, l.e.Computer.ID, controlapi.RevokePassword{ID: l.password})
	},

	"Passkeys.Of": func(l *lived, ctx context.Context) (any, error) { return l.Passkeys.Of(ctx, l.bob.ID) },
	"Passkeys.BeginAdd": func(l *lived, ctx context.Context) (any, error) {
		_, state, err := l.Passkeys.BeginAdd(ctx, l.in)
		return state, err
	},
	"Passkeys.Add": func(l *lived, ctx context.Context) (any, error) {
		_, err := l.Passkeys.Add(ctx, l.adding, l.added)
		return nil, err
	},
	"Passkeys.Rename": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Passkeys.Rename(ctx, l.bob.ID, l.passkeyID, "phone")
	},
	"Passkeys.Remove": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Passkeys.Remove(ctx, l.in, l.passkeyID)
	},
	"Passkeys.SignIn": func(l *lived, ctx context.Context) (any, error) { return l.Passkeys.SignIn(ctx, l.touch) },
	"Passkeys.SignIn, of a copy": func(l *lived, ctx context.Context) (any, error) {
		out, err := l.Passkeys.SignIn(ctx, l.copied)
		return out, unless(err, controlapi.CodeForbidden)
	},

	"Knocks.Look": func(l *lived, ctx context.Context) (any, error) {
		return l.Knocks.Look(ctx, door("app2"), l.dave.Session)
	},
	"Knocks.Ask": func(l *lived, _ context.Context) (any, error) { return nil, l.dave.ask(door("app1")) },
	"Knocks.Accept": func(l *lived, ctx context.Context) (any, error) {
		return nil, l.Knocks.Accept(ctx, door("app2"), l.erin.Session)
	},
	"Knocks.Answer, yes": func(l *lived, _ context.Context) (any, error) {
		return l.answer(l.e, l.knock, controlapi.KnockYes, "")
	},
	"Knocks.Answer, no": func(l *lived, _ context.Context) (any, error) { return l.answer(l.e, l.knock, controlapi.KnockNo, "") },
	"Knocks.Answer, never": func(l *lived, _ context.Context) (any, error) {
		return l.answer(l.e, l.knock, controlapi.KnockNever, "")
	},

	"Keys.Rotate":    func(l *lived, ctx context.Context) (any, error) { return nil, l.Keys.Rotate(ctx) },
	"Keys.RotateNow": func(l *lived, ctx context.Context) (any, error) { return nil, l.Keys.RotateNow(ctx) },
	"Keys.List":      func(l *lived, ctx context.Context) (any, error) { return l.Keys.List(ctx) },
}
