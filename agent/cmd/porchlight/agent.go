package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/agent/local"
	"porchlight/agent/ownersecret"
)

// drain is how long stopping may take after a signal; more than the parts give
// the requests that are under way.
const drain = 15 * time.Second

func agentCommand(where *location, term *terminal) *cobra.Command {
	var localMode, verbose bool
	var https string
	cmd := &cobra.Command{
		Use:   "agent --local",
		Short: "Run Porchlight without the menu bar, until Ctrl-C",
		Long: `Run Porchlight without the menu bar, until Ctrl-C: for servers and SSH.

With --local everything is on this computer: no account, nothing to configure,
and nobody else can reach it. The secret that lets you approve apps is kept in a
file only you can read.`,
		Example: "  porchlight agent --local",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !localMode {
				return usagef("say --local: connecting this command to a control plane elsewhere comes in a later version")
			}
			dir, err := where.dataDir()
			if err != nil {
				return err
			}
			secret, err := fileSecret(cmd.Context(), dir)
			if err != nil {
				return unlessStopped(err)
			}
			level := slog.LevelWarn
			if verbose {
				level = slog.LevelDebug
			}
			api := where.given()
			if api == "" {
				api = agentapi.DefaultAddress
			}
			running, err := local.Start(cmd.Context(), local.Config{
				DataDir:         dir,
				API:             api,
				HTTPS:           https,
				Mode:            agentapi.ModeHeadless,
				OwnerSecretHash: ownersecret.Hash(secret),
				Log:             slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
			})
			if err != nil {
				return unlessStopped(err)
			}
			greet(term, where, running)
			select {
			case <-running.Done():
				return running.Wait()
			case <-cmd.Context().Done():
			}
			ctx, cancel := context.WithTimeout(context.Background(), drain)
			defer cancel()
			return running.Close(ctx)
		},
	}
	cmd.Flags().BoolVar(&localMode, "local", false, "run the control plane and the relay here too, for this computer alone")
	cmd.Flags().StringVar(&https, "https", local.DefaultHTTPS, "with --local: where visitors connect")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log everything to standard error")
	return cmd
}

// unlessStopped is nil for an agent that was told to stop before it was up.
func unlessStopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// fileSecret is the owner secret of a computer without a keychain, made the
// first time.
func fileSecret(ctx context.Context, dataDir string) (string, error) {
	return ownersecret.Ensure(ctx, ownersecret.File(dataDir))
}

// greet says what to type next.
func greet(term *terminal, where *location, running *local.Running) {
	self, suffix := "porchlight", ""
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		self = os.Args[0] // not on the path
	}
	if where.data != "" {
		suffix = " --data " + where.data
	}
	term.line(`Porchlight is on, at %s
The loopback API listens on %s. Next, in another terminal:

  curl -X POST %s/publish -H 'Content-Type: application/json' \
       -d '{"name":"notes","label":"Notes","localPort":8000}'
  %s approve notes%s
  %s open notes%s

Browsers warn until they trust %s
Stop with Ctrl-C.`, running.RootURL(), running.API(), running.API(), self, suffix, self, suffix, running.RootCAPath())
}
