// Package people keeps who may reach this computer, as its owner and its apps see
// it: a list with labels instead of app ids, and the changes of it.
//
// The list is the control plane's. What gives access (an invitation, one more app)
// is done there and answered from there. What takes access away is done here first,
// at once and without a network: a deny record is written and the connections are
// closed. Then the control plane is told, again and again until it answers. The deny
// record is lifted once a snapshot shows that the control plane knows.
//
// What a program changes is told to the owner, who can undo most of it. The package
// knows nothing of HTTP, and who may call it was decided before.
package people

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/devices"
	"porchlight/agent/engine"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/broadcast"
	"porchlight/internal/words"
)

// answerIn is how long the control plane may take for one answer. It is shorter
// than what agentapi.Client waits, so that its caller hears a sentence.
const answerIn = 10 * time.Second

// programIn is how long a program waits to be told that the control plane does not
// answer: what it asks is refused before anything is changed.
const programIn = 2 * time.Second

// Control is the control plane as this package needs it; *controlapi.Client is
// one.
type Control interface {
	People(ctx context.Context) (controlapi.People, error)
	Invite(ctx context.Context, i controlapi.Invite) (controlapi.Person, error)
	InviteAll(ctx context.Context, i controlapi.Invitations) (controlapi.InvitationsMade, error)
	InvitationLink(ctx context.Context, w controlapi.LinkWanted) (controlapi.InvitationLink, error)
	SetAccess(ctx context.Context, g controlapi.SetAccess) (controlapi.Person, error)
	Remove(ctx context.Context, r controlapi.Remove) (controlapi.Person, error)
	Grants(ctx context.Context) ([]controlapi.Grant, error)
	RevokeGrant(ctx context.Context, id string) error
	Passwords(ctx context.Context) ([]controlapi.PasswordInfo, error)
	MakePassword(ctx context.Context, m controlapi.MakePassword) (controlapi.MadePassword, error)
	RevokePassword(ctx context.Context, id string) error
	AddDomain(ctx context.Context, add controlapi.AddDomain) (controlapi.Domain, error)
	LookAtDomain(ctx context.Context, name string) (controlapi.Domain, error)
	RemoveDomain(ctx context.Context, name string) error
	EndBrowser(ctx context.Context, b controlapi.EndBrowser) error
	EndPasskey(ctx context.Context, id string) error
	OwnersLink(ctx context.Context, l controlapi.LinkForOwner) (controlapi.OwnersLink, error)
	AnswerKnock(ctx context.Context, a controlapi.AnswerKnock) (controlapi.Person, error)
}

// Config of New. Fields without a remark are required.
type Config struct {
	// Control is nil where this computer is not connected to an account, and where it is
	// and cannot speak to its control plane: NoControl says why then.
	Control   Control
	NoControl words.Sentence
	// NoDomains says why this computer has no own domains; zero where it may have some.
	NoDomains words.Sentence
	// Authority is what records CAA call who gives this computer's certificates; empty where
	// that is not known.
	Authority string
	Apps      *engine.Apps
	Access    *access.Access
	Activity  *activity.Log
	Store     *store.Store
	Devices   *devices.Devices
	// DisplayName is what the owner calls themselves to people they invite; nil for
	// nothing.
	DisplayName func() string
	// Language is the one the mails to them are in; nil for English.
	Language func() words.Language
	// Report tells the control plane the approved apps, unless it knows them:
	// it refuses to give an app it has not heard of. Nil for nobody to tell.
	Report func(ctx context.Context) error
	// Away says whether the control plane does not answer now; nil for never.
	Away func() bool
	// Refused says whether the control plane does not know this computer any
	// more; nil for never.
	Refused func() bool
	// OwnClients are those of a control plane in this process; nil where it is elsewhere.
	OwnClients *OwnClients
	// Changes is raised when View or Grants may answer something else. Run listens
	// to it, too: it is how it learns that the control plane was heard of. Nil when
	// nobody follows anything.
	Changes *broadcast.Signal
	Now     func() time.Time // time.Now when nil
	Log     *slog.Logger     // discarded when nil
}

// Actor is who asks for a change: the owner, or a program that showed the
// capability.
type Actor struct {
	Owner bool
	// Name is what the owner is told about a program: the name of its executable,
	// and what it calls itself.
	Name words.Sentence
	// Program is the executable's name, as far as the system tells. Process tells one
	// process from another; empty for one that is not known.
	Program, Process string
}

// Owner is the actor of the owner tier.
var Owner = Actor{Owner: true}

// People is safe for concurrent use. Run must be running for changes to reach a
// control plane that was away, and for deny records to be lifted.
type People struct {
	cfg Config

	grouping sync.Mutex // held while a group is changed; taken before all others

	// turn holds a token while changes are sent to the control plane, which are
	// sent one at a time and in order.
	turn chan struct{}
	wake broadcast.Signal // Run has something to look at

	telling sync.Mutex // held while the owner is told something; taken before mu
	took    tookAway   // guarded by telling

	mu        sync.Mutex
	changing  int                // guarded by mu: gifts of programs under way, see room
	pending   map[uint64]pending // guarded by mu, by ID
	lastID    uint64             // guarded by mu
	notBefore time.Time          // guarded by mu: the control plane asked to be left alone until then
	seen      view               // guarded by mu
	grants    []controlapi.Grant // guarded by mu: all, not folded; see Grants
	grantsV   string             // guarded by mu: version of the snapshot grants were read for
	// Guarded by mu: readings of the grants, numbered as they were asked, and the
	// oldest whose answer may still take the place of grants.
	grantsAsked, grantsFrom int
	grantsSeen              map[string]time.Time // guarded by mu: when one was last read, or its end told; see cameAndWent

	clientsKept []controlapi.Grant // guarded by mu: as keepClients wrote them; nil before it did

	answered map[string]bool // guarded by mu: ids of knocks answered here, that the snapshot still has

	clockTold bool // of Run's goroutine: the owner was told that this computer's clock is ahead

	passwords  []controlapi.PasswordInfo // guarded by mu: as last read, never changed; see ListPasswords
	passwordsV string                    // guarded by mu: version of the snapshot they were read after
}

// New reads what was not carried out yet. It starts nothing.
func New(cfg Config) (*People, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	p := &People{
		cfg:     cfg,
		turn:    make(chan struct{}, 1),
		pending: map[uint64]pending{},
		grants:  []controlapi.Grant{},

		grantsSeen: map[string]time.Time{},

		answered: map[string]bool{},
	}
	return p, p.restore()
}

// List carries out GET /people: everybody with a row, removed ones included, the
// owner first. It says of no app when it ends.
func (p *People) List(ctx context.Context) (agentapi.People, error) {
	people, err := p.list(ctx, programIn)
	for i, m := range people.Members {
		people.Members[i] = forWhom(Actor{}, m)
	}
	return people, err
}

func (p *People) list(ctx context.Context, within time.Duration) (agentapi.People, error) {
	if err := p.connected(); err != nil {
		return agentapi.People{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	got, err := p.cfg.Control.People(ctx)
	if err != nil {
		return agentapi.People{}, refusal(err)
	}
	return p.listing(got.Name, got.Members, p.takenAway(unsentOnly)), nil
}

// ListKnown is List for the owner, with the ends of what ends. With the control plane
// away it is what the last snapshot says, so that access can be taken away then, too.
func (p *People) ListKnown(ctx context.Context) (agentapi.People, error) {
	people, err := p.list(ctx, answerIn)
	if agentapi.CodeOf(err) != agentapi.CodeUnavailable {
		return people, err
	}
	snapshot := p.cfg.Access.Snapshot()
	if snapshot.Version == "" || p.cfg.Control == nil || ctx.Err() != nil {
		return agentapi.People{}, err
	}
	return p.listing(snapshot.Computer.Name, snapshot.People, p.takenAway(unconfirmed)), nil
}

func (p *People) listing(name string, members []controlapi.Person, away taken) agentapi.People {
	labels, all, live := p.labels()
	out := agentapi.People{Name: name, Members: make([]agentapi.Person, len(members)), PublishedApps: live}
	for i, m := range members {
		out.Members[i] = p.wire(away.without(m), labels, all)
	}
	slices.SortStableFunc(out.Members, func(a, b agentapi.Person) int {
		return cmp.Or(owners(b)-owners(a), strings.Compare(a.Email, b.Email))
	})
	return out
}

func owners(p agentapi.Person) int {
	if p.Role == agentapi.RoleOwner {
		return 1
	}
	return 0
}

// labels are the labels of approved apps by id, all of them, and those of live
// ones; by label.
func (p *People) labels() (byID map[string]string, all, live []string) {
	approved := p.cfg.Apps.Approved()
	byID, all, live = make(map[string]string, len(approved)), []string{}, []string{}
	for _, app := range approved {
		byID[app.ID] = app.Label
		all = append(all, app.Label)
		if app.Status == agentapi.StatusLive {
			live = append(live, app.Label)
		}
	}
	return byID, all, live
}

// wire is a person as the loopback API shows them to the owner. An app whose approval
// is gone has no label any more and opens nothing; it is left out.
func (p *People) wire(m controlapi.Person, labels map[string]string, all []string) agentapi.Person {
	m = p.cfg.Access.AsNow(m)
	out := agentapi.Person{Email: m.Email, AccountID: m.AccountID, Role: string(m.Role), Status: string(m.Status), Apps: []string{}}
	if m.Role == controlapi.RoleOwner {
		out.Apps = append(out.Apps, all...)
		return out
	}
	out.Apps = labelsOf(slices.Values(m.Apps), labels)
	out.Until, out.Ended = labelled(m.Until, labels), labelled(m.Ended, labels)
	return out
}

// labelsOf are the labels of the apps with these ids that have one, in order.
func labelsOf(ids iter.Seq[string], labels map[string]string) []string {
	out := []string{}
	for id := range ids {
		if label, ok := labels[id]; ok {
			out = append(out, label)
		}
	}
	slices.Sort(out)
	return out
}

// labelled is ends by the labels of the apps; nil where there is none.
func labelled(ends map[string]time.Time, labels map[string]string) map[string]time.Time {
	var out map[string]time.Time
	for id, at := range ends {
		if label, ok := labels[id]; ok {
			if out == nil {
				out = map[string]time.Time{}
			}
			out[label] = at
		}
	}
	return out
}

// shown is a person as whoever changed them is told. Programs know of no ends.
func (p *People) shown(by Actor, m controlapi.Person) agentapi.Person {
	labels, all, _ := p.labels()
	return forWhom(by, p.wire(p.takenAway(unsentOnly).without(m), labels, all))
}

func forWhom(by Actor, m agentapi.Person) agentapi.Person {
	if !by.Owner {
		m.Until, m.Ended = nil, nil
	}
	return m
}

// inSnapshot is a person's row in the last snapshot.
func (p *People) inSnapshot(accountID string) (controlapi.Person, bool) {
	return find(p.cfg.Access.Snapshot().People, func(m controlapi.Person) bool { return m.AccountID == accountID })
}

// find is the first of all that is what is looked for; the zero one where none is.
func find[T any](all []T, is func(T) bool) (one T, found bool) {
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return one, false
	}
	return all[i], true
}

// connected refuses where there is no control plane to ask.
func (p *People) connected() error {
	switch {
	case p.cfg.Control == nil && !p.cfg.NoControl.IsZero():
		return &agentapi.Error{Code: agentapi.CodeUnavailable, Message: p.cfg.NoControl.String(), Words: p.cfg.NoControl}
	case p.cfg.Control == nil:
		return agentapi.Errorf(agentapi.CodeUnavailable,
			"This computer is not connected to an account yet, so there is nobody to list, invite or remove. The owner connects it in Porchlight's menu, or by: porchlight connect.")
	case p.cfg.Refused != nil && p.cfg.Refused():
		return agentapi.Errorf(agentapi.CodeUnavailable,
			"The server does not know this computer any more. The owner has to connect it again.")
	}
	return nil
}

// refusal makes an error of the control plane one for the callers of the
// loopback API. Its sentences are passed on unchanged.
func refusal(err error) error {
	e, ok := errors.AsType[*controlapi.Error](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unreachable()
	case !ok:
		return err
	}
	out := &agentapi.Error{Message: e.Message, Words: e.Words, RetryAfter: e.RetryAfter}
	switch e.Code {
	case controlapi.CodeInvalid, controlapi.CodeForbidden, controlapi.CodeNotFound:
		out.Code = agentapi.CodeInvalid
	case controlapi.CodeTooMany:
		out.Code = agentapi.CodeTooMany
	case controlapi.CodeUnauthorized:
		out.Code = agentapi.CodeUnavailable
		out.Message, out.Words = "The server does not know this computer any more. The owner has to connect it again.", words.Sentence{}
	default:
		if !errors.Is(err, controlapi.ErrOfBefore) {
			return unreachable()
		}
		out.Code = agentapi.CodeUnavailable
	}
	return out
}

// askAgainIn is when it may be worth a new try while the control plane is away.
const askAgainIn = 5 * time.Second

func unreachable() error {
	return &agentapi.Error{
		Code: agentapi.CodeUnavailable, RetryAfter: askAgainIn,
		Message: "The server cannot be reached right now. Try again in a moment.",
	}
}

// definite says whether the control plane understood a request and refused it,
// so that sending it again changes nothing.
func definite(err error) bool {
	e, ok := errors.AsType[*controlapi.Error](err)
	return ok && (e.Code == controlapi.CodeInvalid || e.Code == controlapi.CodeForbidden || e.Code == controlapi.CodeNotFound)
}
