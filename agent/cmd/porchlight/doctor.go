package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/internal/commandline"
)

// doctorWithin bounds each check of doctor, and proveWithin the one that asks a
// keychain, which gives up by itself after 5 s. With everything hanging doctor
// takes two of the first and one of the second.
const (
	doctorWithin = 4 * time.Second
	proveWithin  = 6 * time.Second
)

// verdict of one check of doctor, as doctor --json prints it.
type verdict string

const (
	fine  verdict = "ok"
	note  verdict = "note"  // works, with a limit somebody should know of
	wrong verdict = "wrong" // keeps somebody from what they want
)

// finding is what one check found.
type finding struct {
	Check string  `json:"check"`
	State verdict `json:"state"`
	Text  string  `json:"text"`
	// Next says what to do about it; empty where there is nothing to do.
	Next string `json:"next,omitempty"`
}

func doctorCommand(c cli) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps Porchlight from working, and say what to do",
		Long: `Look for what keeps Porchlight from working, and say what to do: whether its data
is yours and there is room for it, whether it runs, whether you are its owner,
whether control plane, relay and clock agree with it, whether a visitor gets
through to this computer, what finds its names, what your browsers trust, whether
the apps answer, and what waits for you. Each app is asked for its first page, at
most once a minute; nothing is changed.

It ends with 0 when nothing is wrong, and with 1 otherwise.`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := examine(cmd.Context(), c.location)
			if err != nil {
				return err
			}
			if *asJSON {
				if err := c.json(findings); err != nil {
					return err
				}
			} else {
				sayFindings(c.terminal, findings)
			}
			bad := 0
			for _, f := range findings {
				if f.State == wrong {
					bad++
				}
			}
			switch bad {
			case 0:
				return nil
			case 1:
				return fmt.Errorf("one thing is wrong")
			}
			return fmt.Errorf("%d things are wrong", bad)
		},
	}
	asJSON = jsonFlag(cmd)
	return cmd
}

// told is an error as a sentence of its own, where nothing stands before it.
func told(err error) string {
	text := sentence(err)
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func sayFindings(term *terminal, findings []finding) {
	for _, f := range findings {
		term.line("%-6s %-13s %s", f.State, f.Check, printable(f.Text))
		if f.Next != "" {
			term.line("%20s %s", "", printable(f.Next))
		}
	}
}

// examine runs the checks in the order in which one depends on another, and
// leaves out those that nothing can be said of.
func examine(ctx context.Context, where *location) ([]finding, error) {
	dir, err := where.dataDir()
	if err != nil {
		return nil, err
	}
	found := checkData(dir)
	if strange(found) {
		return found, nil
	}
	agent, mode := checkAgent(ctx, where)
	found = append(found, agent)
	if mode == "" {
		return append(found, checkStores(dir)...), nil
	}
	client, state, owner := checkOwner(ctx, where, mode)
	found = append(found, owner)
	if owner.State == wrong {
		return found, nil
	}
	found = append(found, checkConnection(state))
	authorities, err := host.AuthoritiesOf(dir)
	if err != nil {
		return append(found, finding{"certificates", wrong, told(err), ""}), nil
	}
	return append(found, atOnce(ctx, checksOf(state, authorities, dir, client.Probe))...), nil
}

// strange says whether the data directory is one that nothing more can be said of.
func strange(data []finding) bool {
	return len(data) == 1 && data[0].State == wrong
}

// checksOf are the checks that wait for others: control plane, relay, programs and
// apps. They are in the order in which they are printed.
func checksOf(state agentapi.OwnerState, authorities host.Authorities, dir string, ask asker) []check {
	var checks []check
	one := func(f func(ctx context.Context) finding) {
		checks = append(checks, func(ctx context.Context) []finding { return []finding{f(ctx)} })
	}
	account := state.Account
	if account.AuthURL != "" {
		checks = append(checks, func(ctx context.Context) []finding {
			return checkControlPlane(ctx, account.AuthURL, authorities.Control)
		})
	}
	if account.Connected && !account.Local {
		checks = append(checks, func(context.Context) []finding { return checkCookies(account.URL, account.AuthURL) })
	}
	if account.URL != "" {
		one(func(ctx context.Context) finding { return checkVisit(ctx, state, authorities.Root) })
		if name := localhostName(account.URL); name != "" {
			one(func(ctx context.Context) finding { return checkNames(ctx, name) })
		}
	}
	if authorities.Root != "" {
		one(func(ctx context.Context) finding { return checkBrowsers(ctx, dir) })
	}
	if authorities.Account != "" {
		one(func(context.Context) finding { return adviseCAA(account.URL, authorities.Account) })
	}
	if state.Mode == agentapi.ModeDesktop {
		checks = append(checks, checkMenuBar)
	}
	for _, app := range state.Apps {
		checks = append(checks, func(ctx context.Context) []finding { return checkApp(ctx, app, ask) })
	}
	return append(checks, func(context.Context) []finding {
		return append(checkUsers(state.Users), checkMails(state.Undelivered)...)
	})
}

// check finds one thing or several, or nothing to speak of.
type check func(ctx context.Context) []finding

// atOnce runs checks beside each other, so that what hangs is waited for once, and
// returns what they found in their order.
func atOnce(ctx context.Context, checks []check) []finding {
	found := make([][]finding, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, doctorWithin)
			defer cancel()
			found[i] = c(ctx)
		})
	}
	running.Wait()
	return slices.Concat(found...)
}
