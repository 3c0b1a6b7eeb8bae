package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent"
	"porchlight/agent/host"
	"porchlight/agent/ownersecret"
	"porchlight/agent/store"
	"porchlight/internal/autostart"
	"porchlight/internal/commandline"
)

// removed is what uninstall prints once it is done.
type removed struct {
	OK   bool   `json:"ok"`
	Data string `json:"data"` // the directory
}

func uninstallCommand(c cli) *cobra.Command {
	var purge, yes bool
	cmd := &cobra.Command{
		Use:   "uninstall --purge",
		Short: "Remove everything that Porchlight keeps of yours on this computer",
		Long: `Remove everything that Porchlight keeps of yours on this computer: the data directory
with your approvals, people and certificates, the start at login, the trust of your
browsers in its certificates, and what it has in your keychain. It says what, and
asks first. Nothing brings it back but a copy of yours.

Quit the menu bar before. The server that this computer is connected to is told that it
goes, and lets it in no more; its name and people stay in your account there until you
remove it. What you signed in with by 'porchlight reach' stays, and so do the programs:
remove them by the way they came.`,
		Example: `  porchlight uninstall --purge`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON, _ := cmd.Flags().GetBool("json"); asJSON && !yes {
				return commandline.Usagef("with --json nobody is asked: say --yes too")
			}
			if !purge {
				return commandline.Usagef("say --purge: everything of yours is removed, and without it there is nothing to do here. The programs are removed by the way they came")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove the data, too")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return command(c, cmd, func(ctx context.Context, _ []string) (removed, error) {
		dir, err := c.dataDir()
		if err != nil {
			return removed{}, err
		}
		return removed{true, dir}, c.uninstall(ctx, dir, yes)
	}, func(done removed, _ []string) error {
		c.line("%s and what belongs to it are gone.", done.Data)
		return nil
	})
}

// uninstall removes the data directory last: what one that failed has left is found by the
// next.
func (c cli) uninstall(ctx context.Context, dir string, yes bool) error {
	if err := purgeable(dir); err != nil {
		return err
	}
	secrets, where, err := host.Secrets(dir)
	if err != nil {
		return err
	}
	if !yes {
		if err := c.asked(dir, where); err != nil {
			return err
		}
	}
	runs := func() bool { _, _, err := store.Format(dir); return errors.Is(err, store.ErrInUse) }
	usual := dir == agent.DefaultDataDir() // which is what starts at login
	if usual && runs() {
		stopService(ctx, dir)
	}
	if runs() {
		return fmt.Errorf("Porchlight runs on %s, and nothing of it was removed. Stop it first", dir)
	}
	if usual {
		disableService(ctx)
		if err := autostart.Disable(); err != nil {
			return err
		}
	}
	if authority, err := host.OwnAuthority(dir); err == nil {
		if err := authority.Distrust(ctx); err != nil {
			c.remark("Browsers that trust %s may go on: %v", authority.Path, err)
		}
	}
	c.leave(ctx, dir)
	for _, kept := range secrets {
		switch err := kept.Delete(ctx); {
		case err == nil, errors.Is(err, ownersecret.ErrNotFound):
		case errors.Is(err, ownersecret.ErrUnavailable) && !kept.Sure:
		default:
			return fmt.Errorf("not all is removed: %w. Type it again then", err)
		}
	}
	if err := host.Remove(dir); err != nil {
		return fmt.Errorf("not all of %s could be removed: %w", dir, err)
	}
	return nil
}

// leave has the server end the computer's credential. One that is away keeps nobody from removing
// what is theirs.
func (c cli) leave(ctx context.Context, dir string) {
	untold, err := host.Leave(ctx, dir)
	if err != nil {
		c.remark("A server may go on to have this computer in your account: %v", err)
	}
	for at, why := range untold {
		c.remark("%[1]s could not be told, and lets this computer in until you remove it there, at %[1]s/account: %[2]v", printable(at), why)
	}
}

// purgeable refuses a directory that holds anything but an agent's data.
func purgeable(dir string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("there is nothing to remove: %w", err)
	}
	below, err := filepath.Rel(dir, home)
	_, has := os.Lstat(filepath.Join(dir, store.FileName))
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is a link: name the directory that it leads to with --data", dir)
	case err == nil && filepath.IsLocal(below):
		return fmt.Errorf("%s has your home in it, and is not removed", dir)
	case has != nil:
		return fmt.Errorf("%s is no data directory of Porchlight (it has no %s), and is not removed", dir, store.FileName)
	}
	switch _, others, err := host.Contents(dir); {
	case err != nil:
		return err
	case len(others) > 0:
		return fmt.Errorf("%s has something else in it, too, and is not removed: %s. Move that away first", dir, printable(others[0]))
	}
	return nil
}

// asked says what is removed, and has whoever is at the terminal type yes.
func (c cli) asked(dir, where string) error {
	c.line("This removes for ever, on this computer and for you alone:\n\n  %s\n  the start at login, and the trust of your browsers in this computer's certificates\n  the secrets in your keychain, or in %s\n",
		dir, filepath.Join(configDir(), "porchlight"))
	if where != "" {
		c.line("This computer's connection to %[1]s ends. Its name and people stay in your account until you remove it there: %[1]s/account", printable(where))
	}
	c.line("Type yes to go on:")
	answer, err := bufio.NewReader(io.LimitReader(cmp.Or[io.Reader](c.in, os.Stdin), 100)).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return errors.Join(errors.New("nothing was removed"), notEOF(err))
	}
	return nil
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func configDir() string {
	dir, _ := os.UserConfigDir() // empty where there is none, and nothing in it then
	return dir
}
