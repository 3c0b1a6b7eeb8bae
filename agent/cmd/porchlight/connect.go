package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

const (
	// remindEvery is how often a command that waits says that it does.
	remindEvery = 30 * time.Second

	// giveUpIn bounds telling the agent that nobody waits any more.
	giveUpIn = 5 * time.Second

	// streamAgain is the pause before following the agent's events again: it
	// ends them when it becomes another computer.
	streamAgain = 100 * time.Millisecond

	// switchIn is how long the agent may take to become another computer.
	switchIn = 30 * time.Second
)

func connectCommand(c cli) *cobra.Command {
	var req agentapi.ConnectRequest
	var caFile string
	cmd := &cobra.Command{
		Use:   "connect URL",
		Short: "Connect this computer to a control plane, for others to reach it",
		Long: `Connect this computer to a control plane, for others to reach it.

It prints a code and an address. Open the address in any browser, sign in, compare
the code, and choose this computer's name. What you approved stays approved; the
people you invited while the computer was on its own are invited anew. Ctrl-C
gives up, and nothing has changed then.

With --json it prints two documents: the code and the address, and then, once
connected, the account.`,
		Example: `  porchlight connect https://control.example.net
  porchlight connect https://control.lan --name cellar --ca authority.pem`,
		Args: commandline.Exactly("the URL of the control plane"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			req.URL = args[0]
			req.CA, err = readCA(caFile)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Name, "name", "", "name you wish for; the page suggests it")
	f.StringVar(&caFile, "ca", "", "file (PEM) with the authority of a control plane whose certificate this computer does not trust")
	f.StringVar(&req.ACMEDirectory, "acme-directory", "", "ACME directory to order certificates from (default Let's Encrypt; with --ca, this computer makes its own)")
	var note string
	var apps []agentapi.OwnerApp
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Account, error) {
		waiting, err := client.Connect(ctx, req)
		if err != nil {
			return agentapi.Account{}, err
		}
		note = waiting.Note
		if err := c.sayCode(waiting, f); err != nil {
			return agentapi.Account{}, err
		}
		state, err := awaitConnected(ctx, client, waiting, func() {
			c.remark("Still waiting; the code is good until %s.", waiting.ExpiresAt.Local().Format("15:04"))
		})
		if ctx.Err() != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpIn)
			defer cancel()
			if err := client.CancelConnect(ctx); err != nil {
				return agentapi.Account{}, err
			}
			return agentapi.Account{}, errors.New("given up; nothing has changed")
		}
		apps = state.Apps
		return state.Account, err
	}, func(now agentapi.Account, _ []string) error {
		c.line("Connected. This computer is %s", now.URL)
		c.line("%s", note)
		c.nextConnected(apps)
		return nil
	})
}

// sayCode prints what is to be compared, with --json as the first of two documents.
func (t *terminal) sayCode(waiting agentapi.Connecting, flags *pflag.FlagSet) error {
	if asJSON, err := flags.GetBool("json"); asJSON || err != nil {
		return errors.Join(err, t.json(waiting))
	}
	t.line(`Open this address in any browser, and compare the code:

  %s
  %s

Waiting for you to confirm it (until %s; Ctrl-C gives up).`,
		printable(waiting.VerificationURLComplete), printable(waiting.UserCode), waiting.ExpiresAt.Local().Format("15:04"))
	return nil
}

// awaitConnected follows the agent until the connection is made or came to
// nothing.
func awaitConnected(ctx context.Context, client *agentapi.Client, waiting agentapi.Connecting, remind func()) (agentapi.OwnerState, error) {
	return awaitState(ctx, client, remind, func(s agentapi.OwnerState) (bool, error) {
		ours := s.Account.AuthURL == waiting.AuthURL && !s.Account.Local
		switch c := s.Connecting; {
		case ours && s.Account.Connected:
			return true, nil
		case c != nil && c.State == agentapi.ConnectFailed:
			return false, errors.New(c.Problem)
		case c != nil && c.UserCode != waiting.UserCode:
			return false, errors.New("somebody began another connection meanwhile, so this one was given up")
		case c == nil && !ours:
			return false, errors.New("the connection was given up at another place")
		}
		return false, nil
	})
}

// awaitState follows the agent's states, over its restarts, until one satisfies
// done.
func awaitState(ctx context.Context, client *agentapi.Client, remind func(), done func(agentapi.OwnerState) (bool, error)) (found agentapi.OwnerState, err error) {
	tick := time.NewTicker(remindEvery)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended bool
	var missing time.Time // since when there is no agent
	for {
		stream := make(chan error, 1)
		go func() {
			stream <- client.Events(ctx, func(s agentapi.OwnerState) {
				missing = time.Time{}
				if ended {
					return
				}
				var ok bool
				if ok, err = done(s); ok || err != nil {
					found, ended = s, true
					cancel()
				}
			})
		}()
		var lost error
		for waits := true; waits; {
			select {
			case lost = <-stream:
				waits = false
			case <-tick.C:
				remind()
			}
		}
		switch {
		case ended:
			return found, err
		case ctx.Err() != nil:
			return found, ctx.Err()
		case missing.IsZero():
			missing = time.Now()
		case time.Since(missing) > switchIn:
			return found, lost
		}
		select {
		case <-ctx.Done():
		case <-time.After(streamAgain):
		}
	}
}

func disconnectCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "disconnect",
		Short: "Take this computer off its control plane",
		Long: `Take this computer off its control plane. It is on its own again, whether or not
the control plane answers; what you approved stays approved, and nobody else can
reach it any more.`,
	}
	var before agentapi.Account
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (_ agentapi.Account, err error) {
		if before, err = client.Account(ctx); err != nil {
			return before, err
		}
		if err := client.Disconnect(ctx); err != nil {
			return before, err
		}
		state, err := awaitState(ctx, client, func() {}, func(s agentapi.OwnerState) (bool, error) {
			if s.Account.AuthURL == before.AuthURL && before.AuthURL != "" {
				return false, nil
			}
			return s.Account.Connected || !s.Account.Local, nil
		})
		return state.Account, err
	}, func(now agentapi.Account, _ []string) error {
		if now.Local {
			c.line("This computer is on its own again, at %s", now.URL)
		} else {
			c.line("This computer is not connected any more.")
		}
		c.line("What you approved stays approved; nobody else can reach it now.")
		if before.AuthURL != "" && !before.Local {
			c.remark("Next: to have it reached again: %s", c.typed("connect %s", argument(printable(before.AuthURL))))
		}
		return nil
	})
}
