package people

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/agent/upstream"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/test/programs"
)

const bob = "acc-bob"

// plane plays the control plane with one member.
type plane struct {
	row   controlapi.Person
	down  bool
	busy  time.Time    // it asks to be left alone until then
	asked atomic.Int64 // to change something, or for grants
}

func (p *plane) People(context.Context) (controlapi.People, error) {
	return controlapi.People{Name: "maya", Members: []controlapi.Person{p.row}}, nil
}

func (p *plane) answer() (controlapi.Person, error) {
	return p.row, p.refuses()
}

func (p *plane) refuses() error {
	if p.down {
		return errors.New("nobody answers")
	}
	if left := time.Until(p.busy); left > 0 {
		return &controlapi.Error{Code: controlapi.CodeUnavailable, RetryAfter: left}
	}
	return nil
}

func (p *plane) Invite(context.Context, controlapi.Invite) (controlapi.Person, error) {
	return p.answer()
}

func (p *plane) SetAccess(_ context.Context, g controlapi.SetAccess) (controlapi.Person, error) {
	p.asked.Add(1)
	if p.refuses() == nil && !g.Granted {
		p.row.Apps = slices.DeleteFunc(slices.Clone(p.row.Apps), func(id string) bool { return id == g.App })
	}
	return p.answer()
}

func (p *plane) Remove(context.Context, controlapi.Remove) (controlapi.Person, error) {
	p.asked.Add(1)
	if p.refuses() == nil {
		p.row.Status = controlapi.PersonRemoved
		p.row.Epoch++
	}
	return p.answer()
}

func (p *plane) Grants(context.Context) ([]controlapi.Grant, error) {
	p.asked.Add(1)
	return nil, p.refuses()
}
func (p *plane) RevokeGrant(context.Context, string) error { return nil }

func (p *plane) Passwords(context.Context) ([]controlapi.PasswordInfo, error) { return nil, nil }
func (p *plane) AddDomain(context.Context, controlapi.AddDomain) (controlapi.Domain, error) {
	return controlapi.Domain{}, nil
}
func (p *plane) LookAtDomain(context.Context, string) (controlapi.Domain, error) {
	return controlapi.Domain{}, nil
}
func (p *plane) RemoveDomain(context.Context, string) error              { return nil }
func (p *plane) EndPasskey(context.Context, string) error                { return nil }
func (p *plane) EndBrowser(context.Context, controlapi.EndBrowser) error { return nil }
func (p *plane) OwnersLink(context.Context, controlapi.LinkForOwner) (controlapi.OwnersLink, error) {
	return controlapi.OwnersLink{}, nil
}
func (p *plane) RevokePassword(context.Context, string) error { return nil }
func (p *plane) MakePassword(context.Context, controlapi.MakePassword) (controlapi.MadePassword, error) {
	return controlapi.MadePassword{}, nil
}

func (p *plane) InviteAll(context.Context, controlapi.Invitations) (controlapi.InvitationsMade, error) {
	return controlapi.InvitationsMade{}, nil
}

func (p *plane) InvitationLink(context.Context, controlapi.LinkWanted) (controlapi.InvitationLink, error) {
	return controlapi.InvitationLink{}, nil
}

func (p *plane) AnswerKnock(context.Context, controlapi.AnswerKnock) (controlapi.Person, error) {
	return controlapi.Person{}, nil
}

// taking is what the model knows of one thing that can be taken away: whether it
// is taken and may be taken back, and whether it ever was taken for good.
type taking struct {
	held, final bool
	until       time.Time // of held
}

// TestHoldModel: whatever the owner takes away and takes back, in any order, with
// the control plane away and the agent killed in between, somebody gets in
// exactly while nothing is taken from them, what is held can be undone and
// nothing else can, and in the end the control plane knows what stands and the
// agent has nothing left to tell.
func TestHoldModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newHoldMachine(t)
		defer m.close()
		t.Repeat(map[string]func(*rapid.T){
			"take":    m.take,
			"undo":    m.undo,
			"give":    m.give,
			"settle":  m.settle,
			"wait":    m.wait,
			"back":    m.back,
			"network": func(*rapid.T) { m.control.down = !m.control.down },
			"sync":    m.sync,
			"kill":    m.kill,
			"":        m.check,
		})
		m.end(t)
	})
}

type holdMachine struct {
	dir     string
	kept    *store.Store
	control *plane
	access  *access.Access
	apps    *engine.Apps
	people  *People
	changes broadcast.Signal
	now     time.Time
	ids     map[string]string // of apps, by label; "" by ""
	taken   map[string]*taking
}

func newHoldMachine(t rapid.TB) *holdMachine {
	m := &holdMachine{
		control: &plane{}, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), ids: map[string]string{"": ""},
		taken: map[string]*taking{"": {}, "Notes": {}, "Wiki": {}},
	}
	var err error
	m.dir = programs.Got(os.MkdirTemp("", "hold-"))(t)
	m.start(t)
	for name, label := range map[string]string{"notes": "Notes", "wiki": "Wiki"} {
		if _, err = m.apps.Publish(context.Background(), engine.Caller{}, agentapi.PublishRequest{Name: name, Label: label, LocalPort: 8000}); err == nil {
			_, err = m.apps.Approve(context.Background(), name, agentapi.Approval{})
		}
		programs.Must(t, err)
		app, _ := m.apps.ByLabel(label)
		m.ids[label] = app.ID
		m.control.row.Apps = append(m.control.row.Apps, app.ID)
	}
	m.control.row.AccountID, m.control.row.Email = bob, "bob@example.com"
	m.control.row.Role, m.control.row.Status, m.control.row.Epoch = controlapi.RoleMember, controlapi.PersonActive, 1
	m.sync(nil)
	return m
}

// start makes an agent of what the store has.
func (m *holdMachine) start(t rapid.TB) {
	var err error
	m.kept = programs.Got(store.Open(m.dir))(t)
	clock := func() time.Time { return m.now }
	still := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) } // the silence is no matter here
	m.access, err = access.New(access.Config{Store: m.kept, Now: still})
	if err == nil {
		m.apps, err = engine.NewApps(engine.AppsConfig{
			Store: m.kept, Root: func() engine.Root { return engine.Root{Name: "maya", Host: "maya.example"} },
			Listener: func(upstream.Target, int) agentapi.Listener { return agentapi.Listener{} },
			OnGone:   func(string) agentapi.Closed { return agentapi.Closed{OK: true} },
		})
	}
	if err == nil {
		m.people, err = New(Config{
			Control: m.control, Apps: m.apps, Access: m.access, Activity: activity.New(activity.Config{Store: m.kept}), Store: m.kept, Now: clock, Changes: &m.changes, Away: func() bool { return m.control.down },
		})
	}
	programs.Must(t, err)
}

func (m *holdMachine) close() {
	m.kept.Close()
	os.RemoveAll(m.dir)
}

// what draws the whole computer or one of the apps.
func (m *holdMachine) what(t *rapid.T) (label string, known *taking) {
	label = rapid.SampledFrom([]string{"", "Notes", "Wiki"}).Draw(t, "what")
	return label, m.taken[label]
}

func (m *holdMachine) take(t *rapid.T) {
	label, known := m.what(t)
	hold := rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "seconds")
	var got agentapi.PersonChanged
	var err error
	if label == "" {
		got, err = m.people.Remove(context.Background(), Owner, agentapi.RemoveRequest{AccountID: bob, HoldSeconds: hold})
	} else {
		got, err = m.people.SetAccess(context.Background(), Owner, agentapi.AccessRequest{AccountID: bob, App: label, HoldSeconds: hold})
	}
	if err != nil {
		t.Fatalf("taking %q: %v", label, err)
	}
	if hold > 0 && !known.final && got.HeldUntil == nil || hold == 0 && got.HeldUntil != nil {
		t.Fatalf("%q for %d s is held until %v", label, hold, got.HeldUntil)
	}
	if known.held = got.HeldUntil != nil; known.held {
		known.until = *got.HeldUntil
	} else {
		known.final = true
	}
}

func (m *holdMachine) undo(t *rapid.T) {
	label, known := m.what(t)
	_, err := m.people.TakeBack(agentapi.HeldChange{AccountID: bob, App: label})
	if want := map[bool]agentapi.Code{true: "", false: agentapi.CodeConflict}[known.held]; agentapi.CodeOf(err) != want {
		t.Fatalf("undoing %q, which is held %v: %v", label, known.held, err)
	}
	known.held = false
}

// give switches an app on again: only what is held comes back by that here.
func (m *holdMachine) give(t *rapid.T) {
	label := rapid.SampledFrom([]string{"Notes", "Wiki"}).Draw(t, "app")
	known := m.taken[label]
	if !known.held || known.final || m.taken[""].final {
		return
	}
	got, err := m.people.SetAccess(context.Background(), Owner, agentapi.AccessRequest{AccountID: bob, App: label, Granted: true})
	if err != nil || !slices.Contains(got.Person.Apps, label) {
		t.Fatalf("given back: %+v, %v", got, err)
	}
	known.held = false
}

func (m *holdMachine) over(due func(*taking) bool) {
	for _, known := range m.taken {
		if known.held && due(known) {
			known.held, known.final = false, true
		}
	}
}

func (m *holdMachine) settle(t *rapid.T) {
	programs.Must(t, m.people.Settle(context.Background(), agentapi.HeldChange{}))
	m.over(func(*taking) bool { return true })
}

func (m *holdMachine) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "wait")) * time.Second)
	next, _ := m.people.round(context.Background())
	m.over(func(k *taking) bool { return !m.now.Before(k.until) })
	var want time.Duration
	for _, known := range m.taken {
		if left := known.until.Sub(m.now); known.held && (want == 0 || left < want) {
			want = left
		}
	}
	if next != want {
		t.Fatalf("the next moment is in %v, want %v", next, want)
	}
}

// back sets the clock back: nothing is held for longer than it may be.
func (m *holdMachine) back(t *rapid.T) {
	m.now = m.now.Add(-time.Duration(rapid.IntRange(1, 120).Draw(t, "back")) * time.Second)
	next, _ := m.people.round(context.Background())
	m.over(func(k *taking) bool { return k.until.Sub(m.now) > agentapi.MaxHold })
	if next > agentapi.MaxHold {
		t.Fatalf("held for another %v", next)
	}
}

// sync brings the control plane's snapshot, if it answers.
func (m *holdMachine) sync(*rapid.T) {
	if m.control.down {
		return
	}
	m.access.SetSnapshot(controlapi.Snapshot{
		Version: m.now.String(), Computer: controlapi.Computer{ID: "c1", Name: "maya"}, People: []controlapi.Person{m.control.row},
	})
	_, _ = m.people.round(context.Background())
	m.over(func(k *taking) bool { return !m.now.Before(k.until) })
}

// kill leaves what is on the disk.
func (m *holdMachine) kill(t *rapid.T) {
	programs.Must(t, m.kept.Close())
	m.over(func(*taking) bool { return true })
	m.start(t)
}

func (m *holdMachine) check(t *rapid.T) {
	gone := func(label string) bool { return m.taken[label].held || m.taken[label].final }
	for label, id := range m.ids {
		want := !gone("") && !gone(label)
		if d := m.access.Decide(access.Identity{AccountID: bob, Epoch: 1}, id); d.Allowed != want {
			t.Fatalf("%q is open to him: %v (%s), want %v of %+v", label, d.Allowed, d.Reason, want, *m.taken[label])
		}
	}
	if told := m.control.row.Status == controlapi.PersonRemoved; told && !m.taken[""].final {
		t.Fatal("the control plane was told too early")
	}
}

// end has everything carried out and looks at what came of it.
func (m *holdMachine) end(t *rapid.T) {
	m.control.down = false
	m.settle(t)
	for range 3 {
		m.sync(t)
	}
	m.check(t)
	for label, id := range m.ids {
		if label == "" {
			if told := m.control.row.Status == controlapi.PersonRemoved; told != m.taken[""].final {
				t.Fatalf("removed at the control plane: %v, want %v", told, m.taken[""].final)
			}
		} else if has := slices.Contains(m.control.row.Apps, id); has == m.taken[label].final {
			t.Fatalf("%s at the control plane: %v, taken for good: %v", label, has, m.taken[label].final)
		}
	}
	denied, err := m.kept.DenyRecords()
	pending, err2 := m.kept.Pending()
	if err = errors.Join(err, err2); err != nil || len(denied)+len(pending) != 0 {
		t.Fatalf("left behind: %+v, %+v, %v", denied, pending, err)
	}
}
