package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
)

func tokenCommand(term terminal) *cobra.Command {
	list := listCommand(term, "List the tokens", (*admin.Client).Tokens, "There is no token.",
		[]string{"NAME", "ID", "MAY", "ENDS", "USED"}, func(t control.AdminToken) []string {
			return []string{t.Name, t.ID, scopes(t.Scopes), t.Ends.Format(time.DateOnly), sinceOf(t.UsedAt)}
		})
	return group("token", "Tokens for programs that administer the server over HTTPS (/admin/api)", tokenAddCommand(term), list, tokenRemoveCommand(term))
}

func scopes(all []control.TokenScope) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

func tokenAddCommand(term terminal) *cobra.Command {
	var asJSON bool
	var may []string
	var days int
	cmd := clientCommand("add NAME", "Make a token, and print it, this once", commandline.Exactly("a NAME"), func(ctx context.Context, c *admin.Client, args []string) error {
		ask := admin.AddToken{Name: args[0], Seconds: int64(days) * 24 * 60 * 60}
		for _, scope := range may {
			ask.Scopes = append(ask.Scopes, control.TokenScope(scope))
		}
		if days <= 0 {
			return commandline.Usagef("a token lasts 1 to 366 days (--days)")
		}
		added, err := c.AddToken(ctx, ask)
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(added)
		}
		fmt.Fprintf(term.err, "May: %s. Ends: %s. Keep it like a password; it is shown this once:\n", scopes(added.Scopes), added.Ends.Format(time.DateOnly))
		_, err = fmt.Fprintln(term.out, added.Token)
		return err
	})
	cmd.Long = `Make a token for a program that administers the server over HTTPS, and print it,
this once. It is sent as Authorization: Bearer TOKEN to /admin/api/ of the auth
host, or where serve --admin-address has that.

read is for lists, suspend for suspending and resuming. No token makes operators,
tokens, invitations or passkeys. What it did is in the audit log by its id.`
	cmd.Example = `  porchlight-control token add monitoring --data /var/lib/porchlight
  porchlight-control token add "abuse desk" --scope read,suspend --days 30 --data /var/lib/porchlight`
	cmd.Flags().StringSliceVar(&may, "scope", []string{string(control.ScopeRead)}, "what it may: read, suspend or both")
	cmd.Flags().IntVar(&days, "days", int(control.TokenLife/(24*time.Hour)), "how long it lasts")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func tokenRemoveCommand(term terminal) *cobra.Command {
	return showCommand(term, "remove ID", "End a token at once", "the ID of a token", (*admin.Client).RemoveToken, func(t control.AdminToken) {
		fmt.Fprintf(term.out, "%s may nothing any more.\n", t.Name)
	})
}
