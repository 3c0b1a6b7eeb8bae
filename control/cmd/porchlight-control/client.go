package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/audit"
	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
	"porchlight/internal/localca"
)

// patience bounds how long a command waits for another one that has the store
// open for a moment.
const patience = 5 * time.Second

// with runs fn with a client of the control plane: of the process that serves
// the data directory, else of the store itself, opened here.
func (w *where) with(ctx context.Context, fn func(*admin.Client) error) error {
	if w.StoreURL() == "" {
		return commandline.Usagef("say which control plane: --data DIR or --postgres URL")
	}
	deadline := time.Now().Add(patience)
	for {
		client, done, err := w.client(ctx)
		// It may have been started between our two looks, or another command
		// has the store.
		if errors.Is(err, kv.ErrInUse) && time.Now().Before(deadline) && ctx.Err() == nil {
			continue // opening has waited a second
		}
		if err != nil {
			return err
		}
		return errors.Join(fn(client), done())
	}
}

// notThere is admin.ErrNotRunning of a directory in which no control plane has ever been.
type notThere struct{ dir string }

func (e *notThere) Error() string {
	return fmt.Sprintf("there is no control plane in %s. Is its data directory another one (--data, --config)?", e.dir)
}
func (e *notThere) Unwrap() error { return admin.ErrNotRunning }

func (w *where) client(ctx context.Context) (*admin.Client, func() error, error) {
	if w.DataDir != "" {
		client, err := admin.Dial(w.DataDir)
		if err == nil {
			return client, func() error { client.Close(); return nil }, nil
		}
		if !errors.Is(err, admin.ErrNotRunning) {
			return nil, nil, err
		}
	}
	if !w.StoreExists() {
		return nil, nil, &notThere{w.DataDir}
	}
	naming, err := w.naming()
	if err != nil {
		return nil, nil, err
	}
	store, err := kv.Open(ctx, w.StoreURL(), kv.Options{})
	if err != nil {
		return nil, nil, err
	}
	a, err := direct(store, kv.Shared(w.StoreURL()), naming, w.DataDir)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	client := a.Direct()
	return client, func() error {
		client.Close()
		return errors.Join(a.FlushAudit(context.WithoutCancel(ctx)), store.Close())
	}, nil
}

// naming is how the hosts are called: as given, else as they were when the data
// directory was served last.
func (w *where) naming() (control.Naming, error) {
	n := w.Naming
	if w.DataDir != "" {
		last, ok, err := admin.ReadNaming(w.DataDir)
		if err != nil {
			return n, err
		}
		if ok && n.Domain == "" {
			n = last
		}
	}
	if n.Domain == "" {
		return n, commandline.Usagef("say under which domain the computers are: --domain porch.example")
	}
	n.AuthHost = cmp.Or(n.AuthHost, "control."+n.Domain)
	return n, nil
}

// direct is the administration of a store that this process opened. Where it is
// shared, nodes that serve it see what changes here, though nobody tells them.
func direct(store kv.Store, shared bool, naming control.Naming, dataDir string) (*admin.Admin, error) {
	outbox := mail.NewOutbox(store, nil)
	log := audit.New(audit.Config{Store: store, Node: control.ByCommandLine}) // a chain of its own
	service, err := control.New(control.Config{
		Store: store, SharedStore: shared, Naming: naming, Mail: outbox, Audit: log,
	})
	if err != nil {
		return nil, err
	}
	var rootPEM []byte
	if dataDir != "" {
		rootPEM, err = os.ReadFile(filepath.Join(serve.CADir(dataDir), localca.RootFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read the certificate authority: %w", err)
		}
	}
	return admin.New(admin.Config{
		Audit: log, Accounts: service.Accounts, Computers: service.Computers, Clients: service.Clients, Keys: service.Keys, Suspensions: service.Suspensions, Operators: service.Operators,
		Tokens: service.AdminTokens, Overview: service.Overview, Challenges: service.Challenges,
		Store: store, Naming: naming, Outbox: outbox, RootPEM: rootPEM, Files: serve.CAFiles(dataDir),
	})
}

// clientCommand is a verb that asks a control plane.
func clientCommand(use, short string, args cobra.PositionalArgs, do func(context.Context, *admin.Client, []string) error) *cobra.Command {
	var w where
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.complete(cmd); err != nil {
				return err
			}
			return w.with(cmd.Context(), func(c *admin.Client) error { return do(cmd.Context(), c, args) })
		},
	}
	w.flags(cmd.Flags())
	return cmd
}

// doneCommand is a verb that does something to what is named, and says what comes of it.
func doneCommand(term terminal, use, short, named string, do func(*admin.Client, context.Context, string) error, remark, long string) *cobra.Command {
	cmd := clientCommand(use, short, commandline.Exactly(named), func(ctx context.Context, c *admin.Client, args []string) error {
		if err := do(c, ctx, args[0]); err != nil {
			return err
		}
		_, err := fmt.Fprintln(term.err, remark)
		return err
	})
	cmd.Long = long
	return cmd
}

func (t terminal) json(v any) error { return commandline.PrintJSON(t.out, v) }

// listCommand is a verb that shows what ask returns.
func listCommand[T any](term terminal, short string, ask func(*admin.Client, context.Context) ([]T, error), none string, header []string, row func(T) []string) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("list", short, commandline.Exactly(), func(ctx context.Context, c *admin.Client, _ []string) error {
		list, err := ask(c, ctx)
		return show(term, list, err, asJSON, none, header, row)
	})
	jsonFlag(cmd, &asJSON)
	return cmd
}

// show prints a list for programs, or a table for people; where that would have
// no rows, the remark none. With err there is no list.
func show[T any](t terminal, list []T, err error, asJSON bool, none string, header []string, row func(T) []string) error {
	if err != nil {
		return err
	}
	if asJSON {
		return t.json(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(t.err, none)
		return err
	}
	rows := make([][]string, len(list))
	for i, v := range list {
		rows[i] = row(v)
	}
	return commandline.PrintTable(t.out, header, rows)
}

func jsonFlag(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print one JSON document, for programs")
}

func caCommand(term terminal) *cobra.Command {
	return clientCommand("ca", "Print the certificate that agents and browsers have to trust (--tls internal)", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			pem, err := c.RootPEM(ctx)
			if err != nil {
				return err
			}
			_, err = term.out.Write(pem)
			return err
		})
}
