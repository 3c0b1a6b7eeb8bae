package doctor

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/trust"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// triedFor is how long the outcome of a try is told without trying again: whoever
// presses again and again sends one visit in that time.
const triedFor = 3 * time.Second

// maxTried is how many apps' outcomes are kept.
const maxTried = 1000

// TriesConfig is what NewTries needs to know of the agent. Every field but Authorities
// (the system's alone) and Own is required.
type TriesConfig struct {
	DataDir string
	Version string
	Local   bool          // nobody but this computer reaches it
	Host    func() string // root host; empty where there is none by which visitors come
	Closed  func() bool   // the owner keeps everybody out of everything
	// Visit goes to an app's address, or to the computer's own for an empty name. An
	// error that is a sentence about it is a *words.Failure, unwrapped.
	Visit       func(ctx context.Context, app string, by http.RoundTripper) (time.Duration, error)
	Ask         Asker
	Authorities func() (Authorities, error)
	Own         func() (*trust.Authority, error) // see Patient.Own
	// Domains are the own domains of the computer.
	Domains func() []agentapi.OwnDomain
	// Wake has what connects this computer try at once: whoever looks does not want to
	// wait for the next try.
	Wake func()
}

// Tries are tries of whether everything between a visitor and the apps works, made when
// the owner looks. They are safe for concurrent use.
type Tries struct {
	cfg TriesConfig

	mu        sync.Mutex
	addresses map[string]agentapi.TriedAddress // the last, by the name of an app, empty for the computer's own

	examining sync.Mutex // held while everything is looked at, protects what follows
	last      agentapi.Examination
	standing  string // how the connection was then
}

// NewTries tries nothing yet.
func NewTries(cfg TriesConfig) *Tries {
	return &Tries{cfg: cfg, addresses: map[string]agentapi.TriedAddress{}}
}

// Address goes the way of a visitor to an app's address, or to the computer's own for an
// empty name.
func (t *Tries) Address(ctx context.Context, name string) agentapi.TriedAddress {
	t.mu.Lock()
	last, known := t.addresses[name]
	t.mu.Unlock()
	if known && time.Since(last.At) < triedFor {
		return last
	}
	now := t.visit(ctx, name)
	if ctx.Err() != nil {
		return now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.addresses) > maxTried {
		clear(t.addresses)
	}
	t.addresses[name] = now
	return now
}

func (t *Tries) visit(ctx context.Context, name string) agentapi.TriedAddress {
	root := t.cfg.Host()
	host := root
	if name != "" {
		host = name + "." + root
	}
	out := agentapi.TriedAddress{At: time.Now().UTC(), Host: host}
	switch {
	case root == "":
		return why(out, words.Of("This computer is not connected, so it has no address."))
	case t.cfg.Closed():
		return why(out, words.Of("Nobody gets through: you have closed everything."))
	}
	kept, err := t.authorities()
	if err != nil {
		out.Text, out.Words = Sentence(err), words.Text{words.InWords(err)}
		return out
	}
	transport := controlapi.NewTransport(Roots(kept.Root))
	if t.cfg.Local {
		transport.Proxy = nil
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	took, err := t.cfg.Visit(ctx, name, transport)
	out.Works, out.Milliseconds = err == nil, took.Milliseconds()
	if said, ok := err.(*words.Failure); ok {
		return why(out, said.Words)
	} else if err != nil {
		return why(out, Unreached("https://"+host, err))
	}
	return out
}

func (t *Tries) authorities() (Authorities, error) {
	if t.cfg.Authorities == nil {
		return Authorities{}, nil
	}
	return t.cfg.Authorities()
}

// why is a try that says what keeps visitors out.
func why(out agentapi.TriedAddress, said words.Sentence) agentapi.TriedAddress {
	out.Text, out.Words = said.String(), words.Text{said}
	return out
}

// Everything looks at everything. Of several who ask at once, the later ones are told
// what the first one is.
func (t *Tries) Everything(ctx context.Context, state agentapi.OwnerState) (agentapi.Examination, error) {
	t.examining.Lock()
	defer t.examining.Unlock()
	if standing := fmt.Sprint(state.Reachable, state.Trouble); standing != t.standing {
		t.standing = standing // what was found before may be over
		t.mu.Lock()
		clear(t.addresses)
		t.mu.Unlock()
	} else if time.Since(t.last.At) < triedFor {
		return t.last, nil
	}
	if !state.Reachable || state.Trouble != "" {
		t.cfg.Wake()
	}
	kept, err := t.authorities()
	if err != nil {
		return agentapi.Examination{}, err
	}
	var address *agentapi.TriedAddress
	findings := append(Data(t.cfg.DataDir), Connection(state))
	findings = append(findings, Examine(ctx, Patient{
		State: state, Authorities: kept, Own: t.cfg.Own, Ask: t.cfg.Ask, Domains: t.cfg.Domains(),
		Visit: func(ctx context.Context) Finding {
			address = new(t.Address(ctx, ""))
			return Tried(state, *address)
		},
	})...)
	if err := ctx.Err(); err != nil {
		return agentapi.Examination{}, err
	}
	at := time.Now().UTC()
	t.last = agentapi.Examination{
		At: at, Findings: findings, Address: address,
		Report: Report(t.cfg.Version, at, state, t.cfg.DataDir, findings),
	}
	return t.last, nil
}
