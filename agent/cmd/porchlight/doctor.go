package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/host"
	"porchlight/control/commandline"
)

// doctorWithin bounds each check of doctor.
const doctorWithin = 10 * time.Second

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

func doctorCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps Porchlight from working, and say what to do",
		Long: `Look for what keeps Porchlight from working, and say what to do: whether it runs,
whether you are its owner, whether control plane, relay and clock agree with it,
whether a visitor gets through to this computer, what finds its names, what your
browsers trust, and whether the apps answer. Nothing is changed.

It ends with 0 when nothing is wrong, and with 1 otherwise.`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := examine(cmd.Context(), where)
			if err != nil {
				return err
			}
			if asJSON {
				if err := term.json(findings); err != nil {
					return err
				}
			} else {
				sayFindings(term, findings)
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
	jsonFlag(cmd, &asJSON)
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
	found := []finding{checkData(dir)}
	agent, running := checkAgent(ctx, where)
	found = append(found, agent)
	if !running {
		return found, nil
	}
	state, owner := checkOwner(ctx, where)
	found = append(found, owner)
	if owner.State == wrong {
		return found, nil
	}
	found = append(found, checkConnection(state))
	authorities, err := host.AuthoritiesOf(dir)
	if err != nil {
		return append(found, finding{"certificates", wrong, told(err), ""}), nil
	}
	if state.Account.AuthURL != "" {
		found = append(found, checkControlPlane(ctx, state.Account.AuthURL, authorities.Control)...)
	}
	if state.Account.Connected && !state.Account.Local {
		found = append(found, checkCookies(state.Account.URL, state.Account.AuthURL)...)
	}
	if state.Account.URL != "" {
		found = append(found, checkVisit(ctx, state.Account.URL, authorities.Root))
		if name := localhostName(state.Account.URL); name != "" {
			found = append(found, checkNames(ctx, name))
		}
	}
	if authorities.Root != "" {
		found = append(found, checkBrowsers(ctx, dir))
	}
	if authorities.Account != "" {
		found = append(found, adviseCAA(state.Account.URL, authorities.Account))
	}
	for _, app := range state.Apps {
		if app.Status == agentapi.StatusLive {
			found = append(found, checkApp(ctx, app))
		}
	}
	return found, nil
}
