package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/localapi"
	"porchlight/agent/remote"
	"porchlight/agent/tunnel"
	"porchlight/control/controlapi"
	"porchlight/internal/publicnet"
	"porchlight/internal/words"
)

// The control plane: the sync that waits there for news, the tunnel its relays
// send visitors through, and how both are doing.

// makeConnection comes after the access and the apps, which it keeps in step.
func (a *Agent) makeConnection() (err error) {
	control := a.cfg.ControlPlane
	if control == nil {
		return nil
	}
	a.client = &controlapi.Client{
		BaseURL:    control.AuthURL,
		Credential: control.Credential,
		HTTP:       &http.Client{Transport: control.transport()},
		OnClock:    a.access.SetClockAhead,
	}
	auth, err := authRelay(control.AuthURL)
	if err != nil {
		return err
	}
	relays := relayAddresses{control: control, auth: auth, public: publicnet.Has}
	a.tunnel, err = tunnel.New(tunnel.Config{
		Relays:     a.relays,
		Last:       auth,
		Allowed:    relays.allowed,
		Credential: func() string { return control.Credential },
		RootCAs:    control.RootCAs,
		Near:       control.Local,
		Open:       a.access.AnyOpen,
		Opened:     a.access.FollowOpen,
		OnContact: func(ahead time.Duration) {
			a.access.SetClockAhead(ahead)
			a.access.Touch()
		},
		Log: a.cfg.Log.With("part", "tunnel"),
	})
	if err != nil {
		return err
	}
	changed, unfollow := a.changes.Subscribe()
	a.unfollow = unfollow
	a.remote = remote.New(remote.Config{
		Control:     a.client,
		Tunnel:      a.tunnel,
		ComputerID:  a.cfg.ComputerID,
		Last:        a.access.Snapshot(),
		Apps:        a.approvedApps,
		AppsChanged: changed,
		Knocks:      a.knocksFrom,
		TellOff:     a.tellsOff,
		Groups:      a.openByGroup,
		Fills:       a.access.Fills,
		Ends:        a.certificateEnds,
		OnSnapshot:  a.takeSnapshot,
		OnContact:   a.access.Touch,
		OnChange:    a.connectionChanged,
		Log:         a.cfg.Log.With("part", "remote"),
	})
	return nil
}

// authRelay is the auth host as a relay, whose port takes tunnels, too.
func authRelay(authURL string) (controlapi.Relay, error) {
	u, err := url.Parse(authURL)
	if err != nil {
		return controlapi.Relay{}, err
	}
	return controlapi.Relay{Address: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")), ServerName: u.Hostname()}, nil
}

// relays are those that the tunnel chooses from, the ones to be used first. In local mode
// it is the auth host alone, whose port may be another one than when the snapshot was told.
func (a *Agent) relays() []controlapi.Relay {
	if a.local() {
		return nil
	}
	snapshot := a.access.Snapshot()
	return slices.Concat(snapshot.Relays, snapshot.SpareRelays)
}

// connectionChanged tells the owner's side at once, and again when what lasts
// counts as trouble.
func (a *Agent) connectionChanged() {
	a.changes.Raise()
	time.AfterFunc(troubleAfter, a.changes.Raise)
}

// watchTunnel has the owner's state follow the tunnel, and the sync try at once
// when the tunnel stands again: both ends were likely away for the same reason.
// A snapshot that came through wakes the tunnel in turn.
func (a *Agent) watchTunnel(ctx context.Context) error {
	for {
		changed := a.tunnel.Changes()
		a.connectionChanged()
		if state := a.remote.State(); a.tunnel.Connected() && !state.Connected {
			a.remote.Wake()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// announceWait bounds how long an app's going live waits for the control plane
// to know of it. Without the wait a visitor who is quicker would be refused; with
// the control plane away, nobody new can sign in anyhow.
const announceWait = 2 * time.Second

// announce tells the control plane at once that an app went live.
func (a *Agent) announce(ctx context.Context) {
	if a.remote == nil || !a.remote.State().Connected {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, announceWait)
	defer cancel()
	if err := a.remote.Report(ctx); err != nil {
		a.log.Warn("could not tell the control plane of an app that went live; it is told later", "err", err)
	}
}

// approvedApps is what the control plane is told, so that it can let people in.
func (a *Agent) approvedApps() []controlapi.App {
	approved := a.apps.Approved()
	apps := make([]controlapi.App, len(approved))
	for i, app := range approved {
		apps[i] = controlapi.App{ID: app.ID, Name: app.Name, Label: app.Label, Live: app.Status == agentapi.StatusLive, TCP: app.TCP}
	}
	return apps
}

// openByGroup is what the owner's groups open of the approved apps.
func (a *Agent) openByGroup() map[string]map[string]time.Time {
	all := a.access.ByGroup()
	for id, open := range all {
		maps.DeleteFunc(open, func(appID string, _ time.Time) bool { return !a.apps.Has(appID) })
		if len(open) == 0 {
			delete(all, id)
		}
	}
	return all
}

// knocksFrom is from whom the owner takes knocks.
func (a *Agent) knocksFrom() controlapi.KnocksFrom {
	if a.settings.Get().StrangersKnock {
		return controlapi.KnocksFromEverybody
	}
	return controlapi.KnocksFromKnown
}

func (a *Agent) redeem(ctx context.Context, r controlapi.Redeem) (controlapi.Visitor, error) {
	if a.client == nil {
		return controlapi.Visitor{}, &controlapi.Error{
			Code:    controlapi.CodeUnavailable,
			Message: "This computer is not connected to an account.",
		}
	}
	visitor, err := a.client.RedeemVisit(ctx, r)
	if err == nil && visitor.Browser != "" {
		a.people.OwnersBrowser(visitor)
	}
	return visitor, err
}

func (a *Agent) local() bool { return a.cfg.ControlPlane != nil && a.cfg.ControlPlane.Local }

func (a *Agent) authURL() string {
	if a.cfg.ControlPlane == nil {
		return ""
	}
	return a.cfg.ControlPlane.AuthURL
}

// computer is what the last snapshot says of this computer, across restarts.
func (a *Agent) computer() controlapi.Computer { return a.access.Snapshot().Computer }

// HasControlPlane says whether there is a control plane, and that it has not said
// that it does not know this computer.
func (a *Agent) HasControlPlane() bool { return a.remote != nil && !a.remote.State().Refused }

// Account is whose computer this is.
func (a *Agent) Account() agentapi.Account {
	c := a.computer()
	owner, known := a.access.Owner()
	return agentapi.Account{
		Connected: known && a.HasControlPlane(),
		Email:     owner.Email,
		AccountID: owner.AccountID,
		Name:      c.Name,
		Host:      c.Host,
		URL:       c.URL,
		AuthURL:   a.authURL(),
		Local:     a.local(),
	}
}

// connection says how things are with the control plane now.
func (a *Agent) connection() localapi.Connection {
	answers := a.remote != nil && a.remote.State().Connected
	return localapi.Connection{
		Account:   a.Account(),
		Trouble:   a.trouble().String(),
		Words:     a.trouble(),
		Reachable: answers && a.tunnel.Connected() && a.access.Suspended() == nil,
		Away:      a.remote != nil && !answers,
	}
}

// troubleAfter is how long after a change of the connection nothing is called
// trouble: starting and roaming take a moment.
const troubleAfter = 3 * time.Second

// trouble is a sentence about what keeps visitors out, or empty.
func (a *Agent) trouble() words.Text {
	if a.remote == nil {
		return said(a.cfg.NoControlPlane)
	}
	state, suspended := a.remote.State(), a.access.Suspended()
	switch {
	case state.Refused:
		return plain("The server does not know this computer any more. Connect it again.")
	case suspended != nil:
		return said(suspended.Sentence())
	case time.Since(state.Since) < troubleAfter:
		return nil
	case state.OfBefore: // nor do its relays take the tunnel
		return plain("The server runs a Porchlight of before 0.1.0, with which this one does not work, so nobody can open your apps. Ask whoever runs it to update it.")
	case !state.Connected && a.local():
		return plain("The part of Porchlight that gives addresses does not answer. Quit Porchlight and start it again.")
	case state.Blocked:
		return plain("The server answers, but the connection that visitors come by does not get through, so nobody can open your apps. A proxy or a firewall may be in the way.")
	case !state.Connected:
		return a.awaySentences()
	case !a.tunnel.Connected():
		return plain("The server cannot be reached, so nobody can open your apps right now. Porchlight keeps trying.")
	case a.acme != nil:
		return said(a.acme.Trouble())
	}
	return nil
}

// said is a text of one sentence, and of none for a zero one.
func said(s words.Sentence) words.Text {
	if s.IsZero() {
		return nil
	}
	return words.Text{s}
}

// plain is a text that is its own key.
func plain(sentence string) words.Text { return said(words.Plain(sentence)) }

// awaySentences say why the control plane is away, and about how long people keep their
// access while it is.
func (a *Agent) awaySentences() words.Text {
	state := a.remote.State()
	until, ok := a.access.AccessUntil()
	kept := words.Of("Everyone keeps the access they have until %s.", moment(until))
	switch {
	case state.Older && !ok:
		return plain("The server tells an older state than before, which is not believed, and has for too long, so nobody can open your apps. Tell who runs it.")
	case state.Older:
		return words.Text{words.Of("The server tells an older state than before, which is not believed. Tell who runs it."), kept}
	case !ok:
		kept = words.Of("It has not answered for too long, so nobody can open your apps until it does.")
	}
	return append(a.whyAway(state.Why), kept)
}

// whyAway says why the control plane does not answer, and what helps.
func (a *Agent) whyAway(why error) words.Text {
	_, broken := errors.AsType[*net.OpError](why)
	_, nowhere := errors.AsType[*net.DNSError](why)
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](why)
	switch {
	case distrusted:
		return words.Text{doctor.Unreached(a.authURL(), why), words.Of("Ask whoever runs it.")}
	case broken, nowhere, errors.Is(why, context.DeadlineExceeded):
		return words.Text{doctor.Unreached(a.authURL(), why), words.Of("Look whether this computer is online.")}
	}
	return plain("The server does not answer.")
}

// moment is a time, with its day unless that is today.
func moment(at time.Time) any {
	local := at.Local()
	clock := local.Format("15:04")
	if y, m, d := time.Now().Date(); local.Day() != d || local.Month() != m || local.Year() != y {
		return words.Of("%[1]s on %[2]s", clock, words.Day{Day: local})
	}
	return clock
}

// woke has shares and approvals end whose time came while the computer slept, and tunnel
// and sync look after their connections: the relay will have given these up, and to wait
// until their silence shows would keep visitors out. A clock that was set costs one question to the relay.
func (a *Agent) woke(gap time.Duration) {
	a.log.Info("the computer seems to have slept; looking after the connections", "for", gap.Round(time.Second))
	a.access.Woke()
	a.apps.Woke()
	if a.tunnel != nil {
		a.tunnel.Wake()
		a.remote.Wake()
	}
}
