package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/control/archive"
	"porchlight/control/kv"
	"porchlight/control/serve"
	"porchlight/internal/commandline"
	"porchlight/internal/durable"
)

// backupCommand is backup, and export, which leaves out what belongs to the
// machine: the certificate authority.
func backupCommand(term terminal, rows bool) *cobra.Command {
	use, short := "backup FILE", "Write everything to a file, while it runs or not"
	if rows {
		use, short = "export FILE", "Write the rows to a file, to import them into another store"
	}
	cmd := clientCommand(use, short, commandline.Exactly("a FILE"), func(ctx context.Context, c *admin.Client, args []string) error {
		if err := writeBackup(ctx, c, args[0], rows); err != nil {
			return err
		}
		fmt.Fprintf(term.err, "Written to %s. It holds the keys of this control plane: keep it as safe as the server.\n", args[0])
		return nil
	})
	cmd.Long = `Write everything as it is at one moment to a new file, while the server runs or
not: all rows, the signing key among them, and the internal authority. The file
is for its owner alone and not encrypted; it is read back before the command says
that it is done.`
	if rows {
		cmd.Long = `Write the rows to a new file, to import them into another store: from a data
directory to PostgreSQL, or back. Stop the server first, or what it does
afterwards stays behind. The internal authority is left out; it belongs to the
machine.`
	}
	return cmd
}

// writeBackup leaves a whole archive at path, which must be free, or nothing.
func writeBackup(ctx context.Context, c *admin.Client, path string, rows bool) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; choose another name", path)
	}
	var refused error // says by itself what is wrong
	err := durable.ReplaceWith(path, func(f *os.File) error {
		refused = fetchBackup(ctx, c, f, rows)
		return refused
	})
	if err != nil && refused == nil {
		// The error's own path is that of the file before it has its name.
		return fmt.Errorf("cannot write the backup %s: %w", path, durable.Plain(err))
	}
	return err
}

// fetchBackup writes the archive to f and reads it back.
func fetchBackup(ctx context.Context, c *admin.Client, f *os.File, rows bool) error {
	if err := c.Backup(ctx, f, rows); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return archive.Check(f)
}

// restoreCommand is restore, and import, which takes the rows alone.
func restoreCommand(term terminal, rows bool) *cobra.Command {
	use, short := "restore FILE", "Fill an empty data directory, or database, from a backup"
	if rows {
		use, short = "import FILE", "Fill an empty store with the rows of a backup or export"
	}
	var w where
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  commandline.Exactly("a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.complete(cmd); err != nil {
				return err
			}
			if w.StoreURL() == "" {
				return commandline.Usagef("say where to put it: --data DIR or --postgres URL")
			}
			n, err := w.restore(cmd.Context(), args[0], rows)
			if err != nil {
				return err
			}
			fmt.Fprintf(term.err, "%d rows are in place.\n", n)
			return nil
		},
	}
	cmd.Long = `Fill an empty data directory, or an empty database, from a backup. A file that was
cut short or changed is refused before anything is written, and a store that
holds something is never overwritten. The server must not be running.`
	if rows {
		cmd.Long = `Fill an empty store with the rows of an export, or of a backup: all of them, or
none. A store that holds something is never overwritten.`
	}
	w.flags(cmd.Flags())
	return cmd
}

// newLineCommand is new-line, for rows that came back by other means than restore.
func newLineCommand(term terminal) *cobra.Command {
	cmd := clientCommand("new-line", "Have computers believe the store as it is now, though they were told newer", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			if err := c.BeginLine(ctx); err != nil {
				return err
			}
			fmt.Fprintln(term.err, "Computers believe the store as it is now within 10 seconds. Look through the people, app passwords and OAuth clients: what was withdrawn since is back.")
			return nil
		})
	cmd.Long = `Have computers believe the store as it is now, though they were told newer.

A database that lost its last changes, because it failed over to a server that had
not got them or came back from a base backup, tells computers what is older than
before. They do not believe it, for a server that was left behind would tell the
same, and people keep the access they have for as long as the owner set. This
command says that the store is the right one. The servers may run meanwhile; each
follows within 10 seconds. People who were removed and app passwords that were
revoked since then are back: look through them.`
	return cmd
}

// restore reads the archive twice: nothing is written before it is known to be
// whole.
func (w *where) restore(ctx context.Context, path string, rows bool) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("cannot read the backup: %w", err)
	}
	defer f.Close()
	if err := archive.Check(f); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("cannot read the backup: %w", err)
	}
	r, err := archive.NewReader(f)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	store, err := kv.Open(ctx, w.StoreURL(), kv.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	install := func() error { return nil }
	if len(r.Files) > 0 && !rows && w.DataDir != "" {
		var drop func()
		if install, drop, err = stageCA(w.DataDir, r.Files); err != nil {
			return 0, err
		}
		defer drop()
	}
	n, err = store.Load(ctx, r.Next)
	if errors.Is(err, kv.ErrNotEmpty) {
		return 0, fmt.Errorf("%w, and what is there would get lost: restore into an empty data directory or database", err)
	}
	if err == nil {
		err = control.EndLine(ctx, store)
	}
	if err != nil {
		return 0, err
	}
	return n, install()
}

// stageCA writes the authority's files beside their place, which must be free;
// install moves them there and drop removes what was not installed.
func stageCA(dataDir string, files []archive.File) (install func() error, drop func(), err error) {
	dir := serve.CADir(dataDir)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s exists already, and agents trust it: restore into an empty data directory", dir)
	}
	err = os.MkdirAll(dataDir, 0o700) // beside a database, nothing has made it on a new machine
	if err != nil {
		return nil, nil, fmt.Errorf("cannot restore the certificate authority: %w", err)
	}
	staged, err := os.MkdirTemp(dataDir, ".ca-*") // 0700
	if err != nil {
		return nil, nil, fmt.Errorf("cannot restore the certificate authority: %w", err)
	}
	drop = func() { _ = os.RemoveAll(staged) }
	for _, f := range files {
		if err := durable.Replace(filepath.Join(staged, f.Name), f.Data); err != nil {
			drop()
			return nil, nil, fmt.Errorf("cannot restore the certificate authority: %w", err)
		}
	}
	return func() error {
		if err := errors.Join(os.Rename(staged, dir), durable.SyncDir(dataDir)); err != nil {
			return fmt.Errorf("the rows are restored, but not the certificate authority: %w", err)
		}
		return nil
	}, drop, nil
}
