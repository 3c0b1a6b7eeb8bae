// Package doctor looks for what keeps Porchlight from working, for the command line and
// for the window: the data directory and its disk, the control plane and its clock, the
// way of a visitor, certificates, browsers, apps and mails. It is given the owner's state
// and asks what a stranger could ask; each check is bounded, and all of them that wait
// run at once. It never changes anything, and never sends a secret.
package doctor

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
	"porchlight/agent/trust"
	"porchlight/internal/words"
)

// Within bounds each check.
const Within = 4 * time.Second

// Finding is what one check found.
type Finding = agentapi.Finding

// Found is a finding; next is empty where there is nothing to do.
func Found(check string, state agentapi.Verdict, text, next string) Finding {
	return Finding{Check: check, State: state, Text: text, Next: next}
}

// Said is Found of what the window shows, in the language of its screen.
func Said(check string, state agentapi.Verdict, text words.Sentence, next string) Finding {
	return Finding{Check: check, State: state, Text: text.String(), Words: words.Text{text}, Next: next}
}

const (
	fine  = agentapi.VerdictFine
	note  = agentapi.VerdictNote
	wrong = agentapi.VerdictWrong
)

// Authorities are the certificate authorities a data directory relies on besides
// those of the system.
type Authorities struct {
	// Control verifies the control plane; nil is the system's own authorities.
	Control *x509.CertPool
	// Root is the file (PEM) with the root of the certificates this computer
	// makes for itself, which browsers have to trust; empty where an authority
	// issues them. The file need not be there yet.
	Root string
	// Account is the address of this computer's account at the authority that
	// issues its certificates; empty where none does, or none has yet.
	Account string
}

// Patient is who is examined.
type Patient struct {
	State       agentapi.OwnerState
	Authorities Authorities
	// Own is the authority of the certificates this computer makes itself; nil for none.
	Own func() (*trust.Authority, error)
	// Ask has an app asked how it does.
	Ask Asker
	// Domains are the own domains of the computer.
	Domains []agentapi.OwnDomain
	// Visit is the way of a visitor to the computer's own address.
	Visit func(ctx context.Context) Finding
}

// Examine runs the checks that wait for others: control plane, relay, programs and
// apps. What they find is in the order in which one depends on another.
func Examine(ctx context.Context, p Patient) []Finding { return atOnce(ctx, p.checks()) }

// Sentence is an error as a sentence of its own, where nothing stands before it.
func Sentence(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func (p Patient) checks() []check {
	var checks []check
	one := func(f func(ctx context.Context) Finding) {
		checks = append(checks, func(ctx context.Context) []Finding { return []Finding{f(ctx)} })
	}
	account := p.State.Account
	if account.AuthURL != "" {
		checks = append(checks, func(ctx context.Context) []Finding {
			return ControlPlane(ctx, account.AuthURL, p.Authorities.Control)
		})
	}
	if account.Connected && !account.Local {
		checks = append(checks, func(context.Context) []Finding { return Cookies(account.URL, account.AuthURL) })
	}
	if account.URL != "" && (account.Connected || account.Local) {
		one(p.Visit)
		if name := localhostName(account.URL); name != "" {
			one(func(ctx context.Context) Finding { return Names(ctx, name) })
		}
	}
	if p.Authorities.Root != "" && p.Own != nil {
		one(func(ctx context.Context) Finding { return Browsers(ctx, p.Own) })
	}
	if p.Authorities.Account != "" {
		common, known := Common(p.State.Apps)
		one(func(context.Context) Finding { return CAA(account.URL, p.Authorities.Account) })
		if known {
			one(func(context.Context) Finding { return Logs(common) })
		}
	}
	if p.State.Mode == agentapi.ModeDesktop {
		checks = append(checks, MenuBar)
	}
	for _, app := range p.State.Apps {
		checks = append(checks, func(ctx context.Context) []Finding { return App(ctx, app, p.Ask) })
	}
	return append(checks, func(context.Context) []Finding {
		return slices.Concat(Domains(p.Domains), HTTP(p.State.HTTPBroken), Crowded(p.State.Crowded), Containers(p.State.Containers), Users(p.State.Users), Mails(p.State.Undelivered))
	})
}

// check finds one thing or several, or nothing to speak of.
type check func(ctx context.Context) []Finding

// atOnce runs checks beside each other, so that what hangs is waited for once, and
// returns what they found in their order.
func atOnce(ctx context.Context, checks []check) []Finding {
	found := make([][]Finding, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, Within)
			defer cancel()
			found[i] = c(ctx)
		})
	}
	running.Wait()
	return slices.Concat(found...)
}
