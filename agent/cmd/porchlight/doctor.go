package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/doctor"
	"porchlight/agent/host"
	"porchlight/agent/trust"
)

// proveWithin bounds the check that asks a keychain, which gives up by itself after
// 5 s. With everything hanging doctor takes one of it and two of doctor.Within.
const proveWithin = 6 * time.Second

// As doctor --json prints them.
type finding = agentapi.Finding

const (
	fine  = agentapi.VerdictFine
	note  = agentapi.VerdictNote
	wrong = agentapi.VerdictWrong
)

// typedCommand is one within a sentence.
var typedCommand = regexp.MustCompile(`\bporchlight [a-z](?:[^.,)]|[.,][^ ])*`)

func doctorCommand(c cli) *cobra.Command {
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
	}
	return command(c, cmd, func(ctx context.Context, _ []string) (findings, error) {
		found, err := examine(ctx, c.location)
		for i, f := range found {
			found[i].Next = typedCommand.ReplaceAllString(f.Next, "${0}"+strings.ReplaceAll(c.suffix(), "$", "$$"))
			found[i].Words = nil // a screen's
		}
		return found, err
	}, func(found findings, _ []string) error {
		c.line("%s", strings.TrimSuffix(doctor.Lines(found), "\n"))
		return nil
	})
}

// findings are what doctor prints.
type findings []finding

// failed counts what is wrong.
func (all findings) failed() error {
	bad := 0
	for _, f := range all {
		if f.State == wrong {
			bad++
		}
	}
	switch bad {
	case 0:
		return nil
	case 1:
		return errors.New("one thing is wrong")
	}
	return fmt.Errorf("%d things are wrong", bad)
}

// inWords is an error as a sentence of its own, where nothing stands before it.
func inWords(err error) string { return doctor.Sentence(errors.New(sentence(err))) }

// examine runs the checks in the order in which one depends on another, and
// leaves out those that nothing can be said of.
func examine(ctx context.Context, where *location) ([]finding, error) {
	dir, err := where.dataDir()
	if err != nil {
		return nil, err
	}
	found := doctor.Data(dir)
	if strange(found) {
		return found, nil
	}
	agent, mode := checkAgent(ctx, where)
	found = append(found, agent)
	if mode == "" {
		return append(found, doctor.Stores(dir)...), nil
	}
	client, state, owner := checkOwner(ctx, where, mode)
	found = append(found, owner)
	if owner.State == wrong {
		return found, nil
	}
	found = append(found, doctor.Connection(state))
	authorities, err := host.AuthoritiesOf(dir)
	if err != nil {
		return append(found, finding{Check: "certificates", State: wrong, Text: inWords(err)}), nil
	}
	domains, _ := client.OwnDomains(ctx) // none to speak of where nobody tells
	return append(found, doctor.Examine(ctx, doctor.Patient{
		State: state, Authorities: authorities, Ask: client.Probe, Domains: domains,
		Own:   func() (*trust.Authority, error) { return host.OwnAuthority(dir) },
		Visit: func(ctx context.Context) finding { return doctor.Visit(ctx, state, authorities.Root) },
	})...), nil
}

// strange says whether the data directory is one that nothing more can be said of.
func strange(data []finding) bool {
	return len(data) == 1 && data[0].State == wrong
}
