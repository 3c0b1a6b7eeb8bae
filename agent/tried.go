package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/proxy"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// Whether everything between a visitor and the apps works, tried when the owner looks.

// triedFor is how long the outcome of a try is told without trying again: whoever
// presses again and again sends one visit in that time.
const triedFor = 3 * time.Second

// tried are the last tries.
type tried struct {
	mu        sync.Mutex
	addresses map[string]agentapi.TriedAddress // by the name of an app, empty for the computer's own

	examining sync.Mutex // held while everything is looked at, protects last
	last      agentapi.Examination
}

// try goes the way of a visitor to an app's address, or to the computer's own for an
// empty name.
func (a *Agent) try(ctx context.Context, name string) agentapi.TriedAddress {
	a.tried.mu.Lock()
	last, known := a.tried.addresses[name]
	a.tried.mu.Unlock()
	if known && time.Since(last.At) < triedFor {
		return last
	}
	now := a.visit(ctx, name)
	if ctx.Err() != nil {
		return now
	}
	a.tried.mu.Lock()
	defer a.tried.mu.Unlock()
	if a.tried.addresses == nil || len(a.tried.addresses) > maxTried {
		a.tried.addresses = map[string]agentapi.TriedAddress{}
	}
	a.tried.addresses[name] = now
	return now
}

// maxTried is how many apps' outcomes are kept.
const maxTried = 1000

func (a *Agent) visit(ctx context.Context, name string) agentapi.TriedAddress {
	host := a.computer().Host
	if name != "" {
		host = name + "." + host
	}
	out := agentapi.TriedAddress{At: time.Now().UTC(), Host: host}
	switch {
	case a.tunnel == nil || a.computer().Host == "":
		return why(out, words.Of("This computer is not connected, so it has no address."))
	case a.access.DarkSince() != nil:
		return why(out, words.Of("Nobody gets through: you have closed everything."))
	}
	kept, err := a.authorities()
	if err != nil {
		out.Text, out.Words = doctor.Sentence(err), words.Text{words.InWords(err)}
		return out
	}
	transport := controlapi.NewTransport(doctor.Roots(kept.Root))
	if a.local() {
		transport.Proxy = nil
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, doctor.Within)
	defer cancel()
	took, err := a.proxy.Visit(ctx, name, transport)
	out.Works, out.Milliseconds = err == nil, took.Milliseconds()
	switch {
	case errors.Is(err, proxy.ErrElsewhere):
		return why(out, words.Of("What answers at %s is not this computer, or somebody in between reads along: a program that looks into encrypted connections, for one.", host))
	case errors.Is(err, proxy.ErrBusy):
		return why(out, words.Of("Too much is being tried at once. Try again in a moment."))
	case err != nil:
		return why(out, doctor.Unreached("https://"+host, err))
	}
	return out
}

// why is a try that says what keeps visitors out.
func why(out agentapi.TriedAddress, said words.Sentence) agentapi.TriedAddress {
	out.Text, out.Words = said.String(), words.Text{said}
	return out
}

func (a *Agent) authorities() (doctor.Authorities, error) {
	if a.cfg.Authorities == nil {
		return doctor.Authorities{}, nil
	}
	return a.cfg.Authorities()
}

// examine looks at everything. Of several who ask at once, the later ones are told what
// the first one is.
func (a *Agent) examine(ctx context.Context, state agentapi.OwnerState) (agentapi.Examination, error) {
	a.tried.examining.Lock()
	defer a.tried.examining.Unlock()
	if time.Since(a.tried.last.At) < triedFor {
		return a.tried.last, nil
	}
	if !state.Reachable && a.remote != nil { // whoever looks does not want to wait for the next try
		a.tunnel.Wake()
		a.remote.Wake()
	}
	kept, err := a.authorities()
	if err != nil {
		return agentapi.Examination{}, err
	}
	var address *agentapi.TriedAddress
	findings := append(doctor.Data(a.cfg.DataDir), doctor.Connection(state))
	findings = append(findings, doctor.Examine(ctx, doctor.Patient{
		State: state, Authorities: kept, Own: a.cfg.OwnAuthority,
		Ask: func(ctx context.Context, name string) (agentapi.AppHealth, error) {
			app, _ := a.apps.Lookup(name)
			return a.health.Probe(ctx, app.ID), nil
		},
		Visit: func(ctx context.Context) doctor.Finding {
			address = new(a.try(ctx, ""))
			return doctor.Tried(state, *address)
		},
	})...)
	if err := ctx.Err(); err != nil {
		return agentapi.Examination{}, err
	}
	at := time.Now().UTC()
	a.tried.last = agentapi.Examination{
		At: at, Findings: findings, Address: address,
		Report: doctor.Report(Version, at, state, a.cfg.DataDir, findings),
	}
	return a.tried.last, nil
}
