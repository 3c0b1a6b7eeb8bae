package agent

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/engine"
	"porchlight/agent/procinfo"
	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// What a part calls of one that is made after it. These are circles of what happens, and
// none of what a part needs to be made: the engine closes, asks and forgets an app that
// others know of by the engine alone, and the people the sync that tells of them. Nothing of
// it is called before Run, when all are there: no part starts anything, and the API answers
// nobody.

// gone closes what is open to an app whose route is gone, and has forgotten what is
// known of it.
func (a *Agent) gone(appID string) agentapi.Closed {
	defer a.requests.Forget() // what was asked of an app that is gone for good
	defer a.health.Gone(appID)
	return agentapi.Closed{OK: true, Closed: a.access.CloseApp(appID)}
}

// reached has an app asked that visitors reach otherwise than before.
func (a *Agent) reached(id string, byOwner bool) {
	if byOwner {
		a.health.Ask(id)
	} else {
		a.health.Changed(id)
	}
}

// looked has the look at whether anybody listens for an app count.
func (a *Agent) looked(app engine.App, listening bool) { a.health.Listening(app, listening) }

// publishContainer asks in the name of a container, as a program of this user would.
func (a *Agent) publishContainer(ctx context.Context, c agentapi.Container, req agentapi.PublishRequest) error {
	by := engine.Caller{Container: &c, Process: func() procinfo.Process {
		return procinfo.Process{Program: c.String(), User: strings.TrimSuffix(filepath.Base(c.Engine), ".sock")}
	}}
	_, err := a.apps.Publish(ctx, by, req)
	return err
}

// containerGone takes the request of a container back that is gone.
func (a *Agent) containerGone(ctx context.Context, name string, gone agentapi.Container) error {
	return a.apps.ContainerGone(ctx, name, gone)
}

// holder is the container that a name was approved for, its port, and whether the owner is
// asked about something else in its place.
func (a *Agent) holder(name string) (*agentapi.Container, int, bool) { return a.apps.Holder(name) }

// takeSnapshot swaps who may open what, has the owner told, and the tunnel look at the relays.
func (a *Agent) takeSnapshot(snapshot controlapi.Snapshot) {
	before, here := a.access.Snapshot(), a.people.TakenHere()
	if closed := a.access.SetSnapshot(snapshot); closed > 0 {
		a.log.Info("access ended elsewhere", "connections_closed", closed)
	}
	if a.computer() != before.Computer {
		a.log.Info("this computer's address", "url", a.computer().URL)
	}
	a.people.ChangedElsewhere(before, snapshot, here)
	a.people.OwnersPasskeys(snapshot.Passkeys)
	a.people.OwnersRecovery(snapshot.Recovering)
	a.people.Filled(snapshot)
	a.addressChanged(before.Computer, a.computer())
	a.tunnel.Relist()
}

// certificateEnds is when the first certificate ends that cannot be renewed; zero for none.
func (a *Agent) certificateEnds() time.Time {
	if a.acme == nil {
		return time.Time{}
	}
	return a.acme.Ends()
}

// ownersAddress is the owner's; "" while no snapshot has named them.
func (a *Agent) ownersAddress() string {
	if a.access == nil { // it is made after what keeps the activity
		return ""
	}
	owner, _ := a.access.Owner()
	return owner.Email
}

// tellFirstVisit has the owner told that somebody opened an app for the first time.
func (a *Agent) tellFirstVisit(v store.Visited) {
	text := words.Of("%[1]s opened %[2]s for the first time.", v.Email, v.Label)
	a.apps.Note(agentapi.Notice{
		At: time.Now().UTC(), Kind: agentapi.NoticeFirstVisit,
		Visitor: &agentapi.FirstVisit{AccountID: v.AccountID, Email: v.Email, App: v.Label},
	}, words.Text{text})
}
