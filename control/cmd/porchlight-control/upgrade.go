package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"porchlight/control/admin"
	"porchlight/control/kv"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
	"porchlight/internal/oneline"
)

// upgradeCommand is "upgrade --check": whether this program can take over.
func upgradeCommand(term terminal) *cobra.Command {
	var w where
	var check, asJSON bool
	cmd := &cobra.Command{
		Use:   "upgrade --check",
		Short: "Say what starting this version would change, whether it may be started now, and what to do next",
		Long: `Say what starting this version on a store would change, which nodes live there
with which versions, whether they may be replaced one after another now, and what to
do next. It changes nothing, and may be run with the new program while the old one
serves. There is no other upgrade than starting the new program.

Exit codes: 0 this version may be started now, or runs everywhere already, 1 it may
not (the sentences say why), 2 the command line is not right, 3 there is no store.`,
		Example: `  porchlight-control upgrade --check --config /etc/porchlight/control.yaml`,
		Args:    commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !check {
				return commandline.Usagef("say --check: starting the new program is the upgrade, and this says whether and how")
			}
			if err := w.complete(cmd); err != nil {
				return err
			}
			if w.StoreURL() == "" {
				return commandline.Usagef("say which control plane: --data DIR or --postgres URL")
			}
			w.Version = version()
			u, err := serve.CheckUpgrade(cmd.Context(), w.Config)
			if errors.Is(err, kv.ErrNoStore) {
				return fmt.Errorf("%w: this version makes one when it is started; %w", err, admin.ErrNotRunning)
			}
			if err != nil {
				return err
			}
			return term.upgrade(u, asJSON)
		},
	}
	w.flags(cmd.Flags())
	cmd.Flags().BoolVar(&check, "check", false, "look, and change nothing")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// upgrade prints what was found; what may not be done is an error, too.
func (t terminal) upgrade(u serve.Upgrade, asJSON bool) error {
	if asJSON {
		if err := t.json(u); err != nil {
			return err
		}
	} else {
		for _, s := range append(u.Says, u.Next) {
			fmt.Fprintln(t.out, oneline.Printable(s))
		}
	}
	if !u.Safe {
		return errors.New("this version is not to be started there now")
	}
	return nil
}
