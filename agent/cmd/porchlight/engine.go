package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
)

// ownerWithin bounds how long a command waits to see what only the owner may where
// it can do without: a keychain that asks for a password must not hold up the rest.
const ownerWithin = 2 * time.Second

// engineShown is what engine --json prints: the answer of GET /engine/info, and
// the registered apps where the caller is the owner.
type engineShown struct {
	agentapi.EngineInfo
	Registered []agentapi.Registrant `json:"registered,omitempty"`
}

func engineCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Describe the running engine, and the apps attached to it",
		Long: `Describe the running engine: version, protocol, process, and how many apps are
attached to it. The owner also sees which.`,
		Example: "  porchlight engine",
	}
	return programCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (engineShown, error) {
		info, err := client.EngineInfo(ctx)
		if err != nil {
			return engineShown{}, err
		}
		_, state := ownersState(ctx, c.location)
		return engineShown{info, state.Registrants}, nil
	}, func(info engineShown, _ []string) error {
		c.line("Porchlight %s, protocol %d, process %d (%s)", info.EngineVersion, info.Protocol, info.PID, info.Mode)
		if info.FirstPartyApp != "" {
			c.line("Started by: %s", printable(info.FirstPartyApp))
		}
		c.line("Registered apps: %d", info.Registrants)
		if len(info.Registered) == 0 {
			return nil
		}
		return list(c.terminal, "", []string{"APP", "PROCESS", "REGISTERED BY", "USER", "SINCE"}, info.Registered, func(r agentapi.Registrant) []string {
			return []string{r.AppID, strconv.Itoa(r.PID), callerWords(r), r.User, moment(r.RegisteredAt)}
		})
	})
}

// callerWords names the program that registered an app, and its process where
// that is another one.
func callerWords(r agentapi.Registrant) string {
	if r.CallerPID == 0 || r.CallerPID == r.PID {
		return r.Program
	}
	return fmt.Sprintf("%s (process %d)", r.Program, r.CallerPID)
}

// ownersState is what the owner sees, and a client of the owner's; nil where the
// caller is not the owner of the agent that was asked.
func ownersState(ctx context.Context, where *location) (*agentapi.Client, agentapi.OwnerState) {
	if !where.asksItsOwn() {
		return nil, agentapi.OwnerState{}
	}
	ctx, cancel := context.WithTimeout(ctx, ownerWithin)
	defer cancel()
	client, err := where.owner(ctx)
	if err != nil {
		return nil, agentapi.OwnerState{}
	}
	state, err := client.State(ctx)
	if err != nil {
		client = nil
	}
	return client, state
}
