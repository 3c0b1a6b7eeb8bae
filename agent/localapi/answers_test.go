package localapi

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// The owner's verbs on apps that are in no state for them: each answer is one
// that docs/openapi/loopback.yaml describes, which the rig checks, and says what
// is wrong.
func TestOwnerVerbsInTheWrongState(t *testing.T) {
	t.Parallel()
	r := start(t)
	programs.Got(r.open().Publish(t.Context(), agentapi.PublishRequest{Name: "wiki", Label: "Wiki", LocalPort: 8000}))(t)
	r.approved(t, "notes", "Notes")
	const options = `{"forwarded":true,"publicAddress":false,"localhostHost":false,"identityHeader":"","identityValue":"","allowCrossOrigin":false,"h2c":false,"firstByte":0}`
	for _, want := range []struct {
		verb                   string
		unknown, waiting, live int
	}{ // in this order, for some change the state of the live one
		{"approve", 404, 0, 200},
		{"deny", 404, 0, 409},
		{"unmute", 404, 200, 200},
		{"pause", 404, 409, 200},
		{"resume", 404, 409, 200},
		{"options", 404, 409, 200},
		{"stop", 404, 409, 200},
		{"revoke", 404, 409, 200},
	} {
		verb := want.verb
		method, body := "POST", ""
		if verb == "options" {
			method, body = "PATCH", options
		}
		for name, status := range map[string]int{"nothing": want.unknown, "wiki": want.waiting, "notes": want.live} {
			if status == 0 {
				continue // would change what waits
			}
			r.wants(t, r.byOwner(method, "/owner/apps/"+name+"/"+verb, body), status, "")
		}
	}
}

// ben is a member.
var ben = controlapi.Person{AccountID: "b2", Email: "ben@example.net", Role: controlapi.RoleMember, Status: controlapi.PersonActive}

// plane plays the control plane with one member.
type plane struct {
	row     controlapi.Person
	others  []controlapi.Person // that are listed too
	refusal *controlapi.Error   // of what changes something

	passwords []controlapi.PasswordInfo
}

func (p *plane) People(context.Context) (controlapi.People, error) {
	owner := controlapi.Person{AccountID: "a1", Email: "maya@example.net", Role: controlapi.RoleOwner, Status: controlapi.PersonActive}
	return controlapi.People{Name: "maya", Members: append([]controlapi.Person{p.row}, append(p.others, owner)...)}, nil
}

func (p *plane) Invite(_ context.Context, i controlapi.Invite) (controlapi.Person, error) {
	p.row.Apps = i.Apps
	return p.changed()
}

func (p *plane) InviteAll(_ context.Context, i controlapi.Invitations) (controlapi.InvitationsMade, error) {
	out := controlapi.InvitationsMade{}
	for _, email := range i.Emails {
		person := p.row
		person.Email = email
		link := controlapi.InvitationLink{URL: "https://control.localhost:8443/i/kq7d-mh2p-x4tn-aaaa", Until: time.Unix(1_800_000_000, 0).UTC()}
		out.Invitations = append(out.Invitations, controlapi.InvitationMade{Email: email, Person: &person, Link: &link})
	}
	return out, nil
}

func (p *plane) InvitationLink(context.Context, controlapi.LinkWanted) (controlapi.InvitationLink, error) {
	if p.refusal != nil {
		return controlapi.InvitationLink{}, p.refusal
	}
	return controlapi.InvitationLink{URL: "https://control.localhost:8443/i/kq7d-mh2p-x4tn-aaaa", Until: time.Unix(1_800_000_000, 0).UTC()}, nil
}

func (p *plane) SetAccess(_ context.Context, g controlapi.SetAccess) (controlapi.Person, error) {
	p.row.Apps = slices.DeleteFunc(slices.Clone(p.row.Apps), func(id string) bool { return id == g.App })
	if g.Granted {
		p.row.Apps = append(p.row.Apps, g.App)
	}
	return p.changed()
}

func (p *plane) Remove(context.Context, controlapi.Remove) (controlapi.Person, error) {
	p.row.Status, p.row.Apps = controlapi.PersonRemoved, nil
	return p.changed()
}

func (p *plane) changed() (controlapi.Person, error) {
	if p.refusal != nil {
		return controlapi.Person{}, p.refusal
	}
	return p.row, nil
}

func (p *plane) Grants(context.Context) ([]controlapi.Grant, error) { return nil, nil }

func (p *plane) RevokeGrant(context.Context, string) error { return nil }

func (p *plane) Passwords(context.Context) ([]controlapi.PasswordInfo, error) {
	return p.passwords, nil
}

func (p *plane) MakePassword(_ context.Context, m controlapi.MakePassword) (controlapi.MadePassword, error) {
	if p.refusal != nil {
		return controlapi.MadePassword{}, p.refusal
	}
	p.passwords = []controlapi.PasswordInfo{{
		ID: "p1", AccountID: "a1", Email: "maya@example.net", AppID: m.App, Name: m.Name, CreatedAt: time.Unix(1_800_000_000, 0).UTC(),
	}}
	return controlapi.MadePassword{ID: "p1", Password: controlapi.PasswordPrefix + strings.Repeat("a", 32)}, nil
}

func (p *plane) AddDomain(_ context.Context, add controlapi.AddDomain) (controlapi.Domain, error) {
	return controlapi.Domain{Name: add.Name, AppID: add.AppID, State: controlapi.DomainWaiting, Records: []controlapi.DNSRecord{{Type: "TXT", Name: "_porchlight." + add.Name, Value: "bits"}}, Why: controlapi.DomainNoText}, nil
}
func (p *plane) LookAtDomain(_ context.Context, name string) (controlapi.Domain, error) {
	return controlapi.Domain{Name: name, State: controlapi.DomainProven}, nil
}
func (p *plane) RemoveDomain(context.Context, string) error              { return nil }
func (p *plane) EndPasskey(context.Context, string) error                { return nil }
func (p *plane) EndBrowser(context.Context, controlapi.EndBrowser) error { return nil }
func (p *plane) OwnersLink(context.Context, controlapi.LinkForOwner) (controlapi.OwnersLink, error) {
	return controlapi.OwnersLink{URL: "https://control.porch.example/signin/link?token=t"}, nil
}

func (p *plane) RevokePassword(context.Context, string) error {
	p.passwords = nil
	return nil
}

func (p *plane) AnswerKnock(_ context.Context, a controlapi.AnswerKnock) (controlapi.Person, error) {
	return controlapi.Person{AccountID: "a3", Email: "carla@example.net", Role: controlapi.RoleMember, Status: controlapi.PersonPending}, nil
}

// People over HTTP, for a program and for the owner: the shapes are the rig's to
// check, and refusals of the control plane keep their meaning and sentence.
func TestPeopleAnswers(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	registered, err := r.open().Register(t.Context(), agentapi.RegisterRequest{AppID: "com.example.notes", PID: os.Getpid()})
	programs.Must(t, err)
	program := request{header: http.Header{agentapi.HeaderCapability: {registered.Capability}}}
	owner := request{socket: true, secret: r.secret}
	for path, q := range map[string]request{"/people": program, "/owner/people": owner} {
		control.refusal, control.row.Status = nil, controlapi.PersonPending
		do := func(rest, body string, status int, says string) {
			t.Helper()
			q.method, q.path, q.body = "POST", path+rest, body
			if body == "" {
				q.method = "GET"
			}
			got := r.wants(t, q, status, says)
			if (got.header.Get("Retry-After") != "") != (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
				t.Errorf("%s: Retry-After is %q with %d", q.path, got.header.Get("Retry-After"), status)
			}
		}
		const (
			invite = `{"email":"ben@example.net","apps":["Notes"]}`
			grant  = `{"accountId":"b2","app":"Notes","granted":true}`
			revoke = `{"accountId":"b2"}`
		)
		do("/invite", invite, 200, `{"email":"ben@example.net","status":"pending","url":"https://notes.maya.localhost:8443"}`)
		do("", "", 200, `"publishedApps":["Notes"]`)
		do("/invite", `{"email":"ben@example.net","apps":["Notes","Diary"]}`, 400, "Diary")
		do("/invite", `{"email":"ben@example.net"}`, 400, "apps")
		do("/grant", strings.Replace(grant, "true", "false", 1), 200, `"apps":[]`)
		do("/grant", grant, 200, `"apps":["Notes"]`)
		do("/grant", `{"accountId":"b2","app":"Diary","granted":true}`, 400, "Diary")
		do("/revoke", revoke, 200, `"status":"revoked"`)
		do("/revoke", `{}`, 400, "accountId")
		for code, status := range map[string]int{
			controlapi.CodeInvalid: 400, controlapi.CodeForbidden: 400, controlapi.CodeNotFound: 400,
			controlapi.CodeTooMany: 429, controlapi.CodeUnavailable: 503, controlapi.CodeInternal: 503,
		} {
			control.refusal = &controlapi.Error{Code: code, Message: "Not now."}
			if code == controlapi.CodeTooMany {
				control.refusal.RetryAfter = time.Minute
			}
			says := "Not now."
			if status == 503 {
				says = "cannot be reached"
			}
			do("/invite", invite, status, says)
		}
	}
	for path, want := range map[string]string{"/owner/grants": "200 []", "/owner/grants/nobody/revoke": "404", "/owner/notices/77/undo": "404"} {
		owner.method, owner.path, owner.body = "POST", path, ""
		if path == "/owner/grants" {
			owner.method = "GET"
		}
		if got := r.send(t, owner); !strings.HasPrefix(fmt.Sprint(got.status, " ", got.body), want) {
			t.Errorf("%s: %d %s, want %s", path, got.status, got.body, want)
		}
	}
}

// Several invitations over HTTP, and the address of one: for the owner alone.
func TestInvitationAnswers(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	do := func(path, body string, status int, says string) {
		t.Helper()
		r.wants(t, r.byOwner("POST", path, body), status, says)
	}
	const all, link = "/owner/people/invitations", "/owner/people/link"
	do(all, `{"emails":["ben@example.net","ann@example.net"],"apps":["Notes"],"line":"Have a look.","noMail":true}`, 200,
		`{"invitations":[{"email":"ben@example.net","status":"pending","accountId":"b2","url":"https://notes.maya.localhost:8443","link":{"url":"https://control.localhost:8443/i/`)
	for body, says := range map[string]string{
		`{"emails":[],"apps":["Notes"]}`:                                                                           "at least one address",
		`{"emails":"ben@example.net","apps":["Notes"]}`:                                                            "emails",
		`{"emails":[null],"apps":["Notes"]}`:                                                                       "emails",
		`{"apps":["Notes"]}`:                                                                                       "emails",
		`{"emails":["ben@example.net"],"apps":[]}`:                                                                 "at least one app",
		`{"emails":["ben@example.net"],"apps":["Diary"]}`:                                                          "Diary",
		`{"emails":["ben@example.net"],"apps":["Notes"],"line":"see evil.example"}`:                                "web or mail address",
		`{"emails":["ben@example.net"],"apps":["Notes"],"line":"a\nb"}`:                                            "one line",
		`{"emails":["ben@example.net"],"apps":["Notes"],"line":7}`:                                                 "line",
		`{"emails":["ben@example.net"],"apps":["Notes"],"noMail":"yes"}`:                                           "noMail",
		`{"emails":["ben@example.net"],"apps":["Notes"],"until":"tomorrow"}`:                                       `The end "tomorrow" is not understood`,
		`{"emails":["a@b.example"` + strings.Repeat(`,"a@b.example"`, agentapi.MaxInvited) + `],"apps":["Notes"]}`: "At most 50",
	} {
		do(all, body, 400, says)
	}
	do(link, `{"accountId":"b2"}`, 200, `{"url":"https://control.localhost:8443/i/`)
	do(link, `{}`, 400, "accountId")
	control.refusal = &controlapi.Error{Code: controlapi.CodeInvalid, Message: "Ben has come in already."}
	do(link, `{"accountId":"b2"}`, 409, "come in already")
}

// App passwords over HTTP: the shapes are the rig's to check; the password is in one
// answer, and a refusal of the control plane keeps its sentence.
func TestPasswordAnswers(t *testing.T) {
	t.Parallel()
	control := &plane{row: ben}
	r := startWith(t, func(r *rig) { r.control = control })
	r.approved(t, "notes", "Notes")
	do := func(method, path, body string, status int, says string) {
		t.Helper()
		r.wants(t, r.byOwner(method, path, body), status, says)
	}
	const path = "/owner/passwords"
	do("GET", path, "", 200, "[]")
	do("POST", path, `{"app":"notes","name":"git"}`, 200, `{"id":"p1","password":"plp_`)
	do("GET", path, "", 200, `[{"id":"p1","accountId":"a1","email":"maya@example.net","app":"Notes","appName":"notes","name":"git","createdAt":"`)
	for _, body := range []string{`{"app":"diary","name":"git"}`, `{"name":"git"}`, `{"app":"notes"}`, `{"app":["notes"],"name":"git"}`} {
		do("POST", path, body, 400, "")
	}
	control.refusal = &controlapi.Error{Code: controlapi.CodeForbidden, Message: "That is one too many."}
	do("POST", path, `{"app":"notes","name":"git"}`, 400, "That is one too many.")
	do("POST", path+"/p1/revoke", "", 200, `{"ok":true,"closed":0,`)
	do("GET", path, "", 200, "[]")
	for _, id := range []string{"p1", "nobody", "plp_" + strings.Repeat("a", 32), strings.Repeat("a", 101)} {
		do("POST", path+"/"+id+"/revoke", "", 404, "no such app password")
	}
}

// plug plays what connects this computer.
type plug struct {
	connecting agentapi.Connecting
	refusal    *agentapi.Error
	asked      agentapi.ConnectRequest
}

func (p *plug) Connect(_ context.Context, req agentapi.ConnectRequest) (agentapi.Connecting, error) {
	p.asked = req
	if p.refusal != nil {
		return agentapi.Connecting{}, p.refusal
	}
	return p.connecting, nil
}

func (p *plug) LookServer(_ context.Context, look agentapi.ServerLook) (agentapi.Server, error) {
	return agentapi.Server{URL: look.URL, Name: "study"}, nil
}

func (p *plug) CancelConnect(context.Context) error { return nil }

func (p *plug) Disconnect(context.Context) error {
	if p.refusal != nil {
		return p.refusal
	}
	return nil
}

func (p *plug) Connecting() *agentapi.Connecting { return &p.connecting }

// Connecting over HTTP: what is asked for arrives, what is under way is in the
// owner's state, and refusals keep their status.
func TestConnectAnswers(t *testing.T) {
	t.Parallel()
	r := start(t)
	const body = `{"url":"https://control.example","name":"study"}`
	for _, q := range []struct{ method, path, body string }{
		{"POST", "/owner/connect", body}, {"POST", "/owner/connect/look", "{}"}, {"DELETE", "/owner/connect", ""}, {"POST", "/owner/disconnect", ""},
	} {
		r.wants(t, r.byOwner(q.method, q.path, q.body), 503, "porchlight agent")
	}
	r.end()
	plug := &plug{connecting: agentapi.Connecting{
		State: agentapi.ConnectWaiting, AuthURL: "https://control.example", UserCode: "ABCD-EFGH",
		VerificationURL: "https://control.example/device", VerificationURLComplete: "https://control.example/device?code=ABCD-EFGH",
		ExpiresAt: time.Now().UTC().Add(time.Minute),
	}}
	r.connector = plug
	r.serve(t)
	r.wants(t, r.byOwner("POST", "/owner/connect", body), 200, `"userCode":"ABCD-EFGH"`)
	if want := (agentapi.ConnectRequest{URL: "https://control.example", Name: "study"}); plug.asked != want {
		t.Errorf("asked for %+v", plug.asked)
	}
	if state, err := r.owner().State(t.Context()); err != nil || state.Connecting == nil || !reflect.DeepEqual(*state.Connecting, plug.connecting) {
		t.Errorf("the state says %+v, %v", state.Connecting, err)
	}
	r.wants(t, r.byOwner("POST", "/owner/connect/look", `{"url":"https://control.example"}`), 200, `"url":"https://control.example","name":"study"`)
	r.wants(t, r.byOwner("DELETE", "/owner/connect", ""), 200, `{"ok":true}`)
	r.wants(t, r.byOwner("POST", "/owner/disconnect", ""), 200, `{"ok":true}`)
	r.wants(t, r.byOwner("POST", "/owner/connect", `{"url":7}`), 400, "")
	for code, status := range map[agentapi.Code]int{
		agentapi.CodeInvalid: 400, agentapi.CodeConflict: 409, agentapi.CodeTooMany: 429, agentapi.CodeUpstream: 502, agentapi.CodeUnavailable: 503,
	} {
		plug.refusal = agentapi.Errorf(code, "Not now.")
		r.wants(t, r.byOwner("POST", "/owner/connect", body), status, "Not now.")
	}
}
