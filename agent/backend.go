package agent

import (
	"context"
	"os"
	"time"

	"porchlight/agent/agentapi"
)

// backend is the agent as the loopback API sees it; see localapi.Backend.
type backend Agent

func (b *backend) agent() *Agent { return (*Agent)(b) }

// Info answers GET /engine/info.
func (b *backend) Info() agentapi.EngineInfo {
	account := b.agent().Account()
	billing := b.access.Snapshot().Billing
	if billing.Plan == "" {
		billing.Plan, billing.Standing = "self-hosted", "good"
	}
	return agentapi.EngineInfo{
		EngineVersion: Version,
		Protocol:      agentapi.Protocol,
		PID:           os.Getpid(),
		Mode:          b.cfg.Mode,
		Connected:     account.Connected,
		Host:          account.Host,
		Name:          account.Name,
		FirstPartyApp: b.cfg.FirstPartyApp,
		Registrants:   b.reg.Count(),
		Billing:       agentapi.Billing{Plan: billing.Plan, Standing: billing.Standing},
	}
}

func (b *backend) Account() agentapi.Account { return b.agent().Account() }

// settling is how long after a change of the connection nothing is called
// trouble: starting and roaming take a moment.
const settling = 3 * time.Second

// Trouble is a sentence about what keeps visitors out, or empty.
func (b *backend) Trouble() string {
	if b.remote == nil {
		return b.cfg.Unlinked
	}
	state := b.remote.State()
	switch {
	case state.Refused:
		return "The control plane does not know this computer any more. Connect it again."
	case time.Since(state.Since) < settling:
		return ""
	case !state.Connected && b.agent().local():
		return "The control plane on this computer does not answer. Quit Porchlight and start it again."
	case !state.Connected:
		return b.agent().silence()
	case !b.tunnel.Connected():
		return "The relay cannot be reached, so nobody can open your apps right now. Porchlight keeps trying."
	case b.acme != nil:
		return b.acme.Trouble()
	}
	return ""
}

// Reachable says whether the control plane answers and a relay sends visitors.
func (b *backend) Reachable() bool {
	return b.remote != nil && b.remote.State().Connected && b.tunnel.Connected()
}

func (b *backend) Outbox(ctx context.Context) ([]agentapi.Mail, error) {
	if b.cfg.Outbox == nil {
		return []agentapi.Mail{}, nil
	}
	return b.cfg.Outbox(ctx)
}

func (b *backend) OutboxSize(ctx context.Context) int {
	size, err := b.outboxSize(ctx)
	if err != nil && ctx.Err() == nil {
		b.log.Warn("cannot read the outbox", "err", err)
	}
	return size
}

func (b *backend) outboxSize(ctx context.Context) (int, error) {
	if b.cfg.OutboxSize != nil {
		return b.cfg.OutboxSize(ctx)
	}
	mails, err := b.Outbox(ctx)
	return len(mails), err
}

// OpenLink makes a one-time link that signs the owner in at an app, or at the
// launcher for an empty name.
func (b *backend) OpenLink(_ context.Context, name string) (agentapi.OpenLink, error) {
	if name != "" {
		if err := b.opens(name); err != nil {
			return agentapi.OpenLink{}, err
		}
	}
	switch {
	case b.rules.DarkSince() != nil:
		return agentapi.OpenLink{}, agentapi.Errorf(agentapi.CodeConflict, "You have closed everything. Open it again first.")
	case !b.agent().Account().Connected:
		return agentapi.OpenLink{}, b.addressless()
	}
	link, expires, err := b.proxy.OpenLink(name)
	if err != nil {
		return agentapi.OpenLink{}, agentapi.Errorf(agentapi.CodeUnavailable, "%s.", err)
	}
	return agentapi.OpenLink{URL: link, ExpiresAt: expires}, nil
}

// addressless says why this computer has no address to open anything at.
func (b *backend) addressless() error {
	why := b.Trouble()
	if why == "" {
		why = "Porchlight is still connecting. Try again in a moment."
	}
	return agentapi.Errorf(agentapi.CodeUnavailable, "%s", why)
}

// opens says why an app cannot be opened at its address; nil when it can.
func (b *backend) opens(name string) error {
	app, ok := b.apps.Lookup(name)
	switch {
	case !ok:
		return agentapi.Errorf(agentapi.CodeNotFound, "There is no app of this name.")
	case app.Status == agentapi.StatusPending:
		return agentapi.Errorf(agentapi.CodeConflict, "%q waits for your approval. Approve it first.", app.Label)
	case app.Status != agentapi.StatusLive:
		return agentapi.Errorf(agentapi.CodeConflict, "%q is stopped. It comes back when the app publishes itself again.", app.Label)
	case app.Paused:
		return agentapi.Errorf(agentapi.CodeConflict, "%q is paused. Resume it first.", app.Label)
	}
	return nil
}

// Connections counts what is open to each app, by app id.
func (b *backend) Connections() map[string]int { return b.access.Connections() }

func (b *backend) Changes() (changed <-chan struct{}, cancel func()) { return b.changes.Subscribe() }
