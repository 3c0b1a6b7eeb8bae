// Package localapi serves the loopback API: with it local apps ask to be published,
// and the owner decides (docs/interface.md, What holds for every call on this
// computer).
//
// A request comes in by one of two listeners, TCP on the loopback address or the
// owner's unix socket, which a Server keeps as long as the process lives; the agent
// that answers behind it, an API, may be replaced. The guard turns away everything
// that a web page could have sent. One table then says which handler it goes to and
// which tier it needs; admit is the only place that checks a tier. Handlers decide
// nothing: they turn a request into a call of the room that does.
//
// The package never serves on an address that another computer can reach, and
// never answers with anything but JSON, or events for the owner.
package localapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"porchlight/agent/access"
	"porchlight/agent/activity"
	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/engine"
	"porchlight/agent/health"
	"porchlight/agent/identity"
	"porchlight/agent/listening"
	"porchlight/agent/people"
	"porchlight/agent/requests"
	"porchlight/agent/senders"
	"porchlight/agent/settings"
	"porchlight/internal/words"
)

// Bounds of a connection. They are generous for a program on this computer and
// keep one that hangs from holding much.
const (
	readHeaderIn = 5 * time.Second
	readBodyIn   = 10 * time.Second
	writeIn      = 10 * time.Second
	idleFor      = time.Minute
	maxHeader    = 16 << 10 // bytes
	maxConns     = 512      // of each listener; see entry for other users' share
	drainFor     = 5 * time.Second
)

// Connection says how things are between this computer and its control plane.
type Connection struct {
	Account agentapi.Account
	Trouble string     // a sentence about what keeps visitors out, or empty
	Words   words.Text // the same, to be said in another language
	// Reachable is true while the control plane answers and a relay sends visitors,
	// Away while there is a control plane that does not answer.
	Reachable, Away bool
}

// Config of New. Fields without a remark are required.
type Config struct {
	Server   *Server // that the agent is behind
	Settings *settings.Settings
	Access   *access.Access
	Activity *activity.Log
	Apps     *engine.Apps
	Users    *engine.Users
	People   *people.People
	// Requests are what visitors asked.
	Requests *requests.Log
	// Health is how apps do.
	Health *health.Health
	// Identity has the keys that sign who visitors are.
	Identity *identity.Signer
	// Senders are programs of others that the owner named.
	Senders *senders.Senders
	// Listening is what listens on this computer; nil where nobody looks.
	Listening *listening.Listening
	// TrustChecks are nil where browsers trust the certificates of this computer anyway.
	TrustChecks *TrustChecks
	// Info is what does not change while the engine runs.
	Info agentapi.EngineInfo
	// Connection is called for each answer that says something about it.
	Connection func() Connection
	// Announce returns when the control plane knows of an app that went live, or has
	// had its time for that; nil where nobody has to know.
	Announce func(ctx context.Context)
	// Certificate is what is known of the certificate of a live app, by name; nil for
	// nothing, and to say nothing.
	Certificate func(name string) *agentapi.Certificate
	// MakeLink makes a one-time link that signs the owner in at an app, or at the
	// launcher for an empty name.
	MakeLink func(name string) (url string, expires time.Time, err error)
	// Outbox lists the mails kept on this computer, newest first, and OutboxSize counts
	// them without reading them; both are nil where the control plane is elsewhere.
	Outbox     func(ctx context.Context) ([]agentapi.Mail, error)
	OutboxSize func(ctx context.Context) (int, error)
	// Tries are of what is between a visitor and the apps; nil where nothing can be tried.
	Tries *doctor.Tries
	// Broken is how often reading visitors' requests failed by a fault of ours.
	Broken func() int
	// Crowded is when visitors last had all they may have; zero for never.
	Crowded func() time.Time
	// Containers is what keeps containers from addresses, nil for nothing.
	Containers func() *agentapi.ContainersTrouble
	// Update is what is known of newer versions.
	Update func() *agentapi.Update
	Log    *slog.Logger // discarded when nil
}

// API is one agent as the Server shows it. It is made by New, and its Run has it
// answer.
type API struct {
	cfg    Config
	log    *slog.Logger
	server *Server
	states states
	paces  paces

	cut    context.Context // ends when requests under way have had long enough
	cutOff context.CancelFunc
	ending chan struct{} // closed when Run's context ends: streams leave then

	mu       sync.Mutex     // protects ended, and is held to add to requests
	ended    bool           // answers no more requests
	requests sync.WaitGroup // under way
}

// tier says who may call a route.
type tier int

const (
	tierOpen       tier = iota // any program on this computer
	tierCapability             // a program that registered with this run of the engine
	tierOwner                  // the owner: on the owner's socket, with the owner secret
	tierTake                   // the owner, or the menu bar before it has that secret: looks, or takes away
)

type route struct {
	method string
	path   string // of an http.ServeMux, without method
	tier   tier
	serve  handler
}

// handler turns a request into a call of the room that decides, and returns what is
// answered with 200 as JSON, unless it is accepted or a stream.
type handler func(*API, *http.Request) (any, error)

// routes says for each request who answers it, and who may send it.
var routes = []route{
	{"POST", "/publish", tierOpen, with((*API).publish)},
	{"GET", "/publish/{name}", tierOpen, (*API).publication},
	{"DELETE", "/publish/{name}", tierOpen, (*API).unpublish},
	{"GET", "/status", tierOpen, (*API).status},
	{"GET", "/engine/info", tierOpen, (*API).engineInfo},
	{"POST", "/engine/register", tierOpen, with((*API).register)},
	{"POST", "/engine/heartbeat", tierOpen, with((*API).beat)},
	{"POST", "/engine/deregister", tierOpen, (*API).deregister},

	{"GET", "/people", tierCapability, ofPeople((*people.People).List)},
	{"POST", "/people/invite", tierCapability, byProgram((*API).invite)},
	{"POST", "/people/grant", tierCapability, byProgram((*API).setAccess)},
	{"POST", "/people/revoke", tierCapability, byProgram((*API).remove)},

	{"GET", "/owner/state", tierTake, (*API).ownerState},
	{"GET", "/owner/events", tierTake, (*API).ownerEvents},
	{"GET", "/owner/account", tierTake, (*API).ownerAccount},
	{"GET", "/owner/outbox", tierOwner, (*API).ownerOutbox},
	{"POST", "/owner/connect", tierOwner, with((*API).connect)},
	{"POST", "/owner/connect/look", tierOwner, with((*API).lookServer)},
	{"DELETE", "/owner/connect", tierOwner, (*API).cancelConnect},
	{"POST", "/owner/disconnect", tierOwner, (*API).disconnect},
	{"POST", "/owner/apps/{name}/approve", tierOwner, (*API).approve},
	{"POST", "/owner/apps/{name}/tcp", tierOwner, with((*API).publishTCP)},
	{"POST", "/owner/apps/{name}/deny", tierTake, ofApp((*engine.Apps).Deny)},
	{"POST", "/owner/apps/{name}/stop", tierTake, ofApp((*engine.Apps).Pause)}, // its name for older programs
	{"POST", "/owner/apps/{name}/revoke", tierTake, ofApp((*engine.Apps).Revoke)},
	{"POST", "/owner/open", tierOwner, (*API).open},
	{"POST", "/owner/account/recover", tierOwner, ofPeople((*people.People).OwnersLink)},
	{"POST", "/owner/apps/{name}/open", tierOwner, (*API).open},
	{"GET", "/owner/ports/{port}", tierOwner, (*API).port},
	{"POST", "/owner/trust/check", tierOwner, (*API).beginTrustCheck},
	{"GET", "/owner/trust/check", tierOwner, (*API).trustCheck},
	{"GET", "/owner/listening", tierTake, (*API).listening},
	{"POST", "/owner/listening/look", tierOwner, with((*API).look)},
	{"POST", "/owner/apps/{name}/share", tierOwner, (*API).share},
	{"DELETE", "/owner/apps/{name}/share", tierTake, ofApp((*engine.Apps).Unshare)},
	{"POST", "/owner/apps/{name}/probe", tierOwner, (*API).probe},
	{"POST", "/owner/apps/{name}/try", tierOwner, (*API).try},
	{"POST", "/owner/health", tierOwner, (*API).examine},
	{"POST", "/owner/apps/{name}/unmute", tierOwner, (*API).unmute},
	{"POST", "/owner/apps/{name}/pause", tierTake, ofApp((*engine.Apps).Pause)},
	{"POST", "/owner/apps/{name}/resume", tierOwner, (*API).resume},
	{"PATCH", "/owner/apps/{name}/options", tierOwner, (*API).changeOptions},
	{"GET", "/owner/apps/{name}/assist", tierOwner, (*API).assist},
	{"GET", "/owner/identity-key", tierOwner, (*API).identityKey},
	{"POST", "/owner/identity-key/rotate", tierOwner, with((*API).rotateIdentityKey)},
	{"POST", "/owner/clients", tierOwner, withPeople((*people.People).AddClient)},
	{"GET", "/owner/people", tierTake, ofPeople((*people.People).ListKnown)}, // also with the control plane away
	{"POST", "/owner/people/invite", tierOwner, byOwner((*API).invite)},
	{"POST", "/owner/people/invitations", tierOwner, withPeople((*people.People).InviteAll)}, // programs have none: a line is the owner's own words
	{"POST", "/owner/people/link", tierOwner, withPeople((*people.People).Link)},
	{"POST", "/owner/people/grant", tierTake, byOwner((*API).setAccess)},
	{"POST", "/owner/people/revoke", tierTake, byOwner((*API).remove)},
	{"POST", "/owner/people/undo", tierTake, (*API).undoHeld},
	{"POST", "/owner/people/settle", tierTake, (*API).settleHeld},
	{"GET", "/owner/groups", tierTake, ofPeople((*people.People).ListGroups)},
	{"POST", "/owner/groups", tierOwner, withPeople((*people.People).AddGroup)},
	{"DELETE", "/owner/groups/{id}", tierTake, ofID((*people.People).RemoveGroup)},
	{"POST", "/owner/groups/{id}/fill", tierOwner, withGroup((*people.People).FillGroup)},
	{"POST", "/owner/groups/{id}/join", tierOwner, withGroup((*people.People).JoinGroup)},
	{"POST", "/owner/groups/{id}/leave", tierTake, withGroup((*people.People).LeaveGroup)},
	{"POST", "/owner/groups/{id}/grant", tierOwner, withGroup((*people.People).GrantGroup)},
	{"POST", "/owner/groups/{id}/withdraw", tierTake, withGroup((*people.People).WithdrawGroup)},
	{"GET", "/owner/knocks", tierTake, (*API).knocks},
	{"POST", "/owner/knocks/{id}/answer", tierTake, with((*API).answerKnock)},
	{"GET", "/owner/visitors", tierTake, (*API).visitors},
	{"POST", "/owner/visitors/disconnect", tierTake, with((*API).disconnectVisitor)},
	{"GET", "/owner/grants", tierTake, ofPeople((*people.People).ListGrants)},
	{"POST", "/owner/grants/{id}/revoke", tierTake, ofID((*people.People).RevokeGrant)},
	{"GET", "/owner/passwords", tierTake, ofPeople((*people.People).ListPasswords)},
	{"POST", "/owner/passwords", tierOwner, withPeople((*people.People).MakePassword)},
	{"POST", "/owner/passwords/{id}/revoke", tierTake, ofID((*people.People).RevokePassword)},
	{"GET", "/owner/senders", tierTake, (*API).listSenders},
	{"POST", "/owner/senders", tierOwner, with((*API).addSender)},
	{"POST", "/owner/senders/{id}/secret", tierOwner, with((*API).changeSenderSecret)},
	{"POST", "/owner/senders/{id}/revoke", tierTake, (*API).revokeSender},
	{"GET", "/owner/domains", tierTake, ofPeople((*people.People).ListDomains)},
	{"POST", "/owner/domains", tierOwner, withPeople((*people.People).AddDomain)},
	{"POST", "/owner/domains/{name}/check", tierOwner, ofDomain((*people.People).CheckDomain)},
	{"DELETE", "/owner/domains/{name}", tierTake, ofDomain((*people.People).RemoveDomain)},
	{"GET", "/owner/devices", tierTake, ofPeople((*people.People).ListDevices)},
	{"POST", "/owner/devices", tierOwner, withPeople((*people.People).MakeDevice)},
	{"POST", "/owner/devices/{id}/revoke", tierTake, ofID((*people.People).RevokeDevice)},
	{"POST", "/owner/notices/{id}/undo", tierOwner, numbered((*API).undo)},
	{"POST", "/owner/notices/{id}/seen", tierTake, numbered((*API).see)},
	{"POST", "/owner/dark", tierTake, (*API).goDark},
	{"DELETE", "/owner/dark", tierOwner, (*API).lightUp},
	{"GET", "/owner/activity", tierTake, (*API).activity},
	{"GET", "/owner/activity/page", tierTake, (*API).activityPage},
	{"POST", "/owner/activity/{id}/undo", tierOwner, numbered((*API).undoActivity)},
	{"DELETE", "/owner/activity", tierOwner, (*API).clearActivity},
	{"GET", "/owner/requests", tierOwner, (*API).requested},
	{"GET", "/owner/users", tierTake, (*API).users},
	{"POST", "/owner/users/{id}/allow", tierOwner, (*API).allowUser},
	{"POST", "/owner/users/{id}/deny", tierTake, (*API).denyUser},
	{"DELETE", "/owner/users/{id}", tierOwner, (*API).forgetUser},
	{"GET", "/owner/settings", tierTake, (*API).settings},
	{"PATCH", "/owner/settings", tierOwner, (*API).changeSettings},
}

// New starts nothing; see Run.
func New(cfg Config) *API {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	a := &API{
		cfg:    cfg,
		log:    cfg.Log,
		server: cfg.Server,
		paces:  newPaces(),
		ending: make(chan struct{}),
	}
	a.cut, a.cutOff = context.WithCancel(context.Background())
	a.states.seq = uint64(time.Now().UnixMicro())
	return a
}

// Run answers what the server is asked until ctx ends; then requests under way may
// finish for a few seconds. The agent before must have ended. It returns nil.
func (a *API) Run(ctx context.Context) error {
	a.server.current.Store(a)
	a.server.changes.Raise()
	<-ctx.Done()
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	close(a.ending)
	late := time.AfterFunc(drainFor, func() {
		a.log.Warn("requests are cut off")
		a.cutOff()
	})
	defer late.Stop()
	a.requests.Wait()
	return nil
}

// enter says whether the agent still answers; answer comes next.
func (a *API) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.requests.Add(1)
	}
	return !a.ended
}

var (
	// errGoesOn is returned by a handler whose answer the next agent goes on with.
	errGoesOn = errors.New("the next agent goes on")
	// errGone is of a request that no agent answers any more: its connection ends.
	errGone = errors.New("no agent answers")
)

// answer carries out one request, after enter.
func (a *API) answer(from listenerKind, rt route, w http.ResponseWriter, r *http.Request) error {
	defer a.requests.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.cut, func() {
		cancel()
		// The answer too: a client that does not read it must not keep the next agent
		// waiting. A writer without deadlines is one of a test, not of a connection.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now())
	})()
	r = r.WithContext(ctx)
	err := a.admit(rt.tier, from, r)
	var body any
	if err == nil {
		body, err = rt.serve(a, r)
	}
	if err == nil {
		err = reply(w, body)
	}
	if err != nil && a.cut.Err() != nil {
		return errGone
	}
	return err
}
