package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
)

func operatorCommand(term terminal) *cobra.Command {
	list := listCommand(term, "List the operators", (*admin.Client).Operators,
		"Nobody is an operator: only this command line administers the server.", []string{"EMAIL", "ID", "SINCE", "PASSKEY"},
		func(o control.Operator) []string {
			return []string{o.Email, o.ID, o.Since.Format(time.DateOnly), map[bool]string{true: "yes", false: "none yet"}[o.Passkey]}
		})
	return group("operator", "Accounts that may administer the server",
		roleCommand(term, "add MAIL", "Give an account the role operator", (*admin.Client).AddOperator, func(o control.Operator) string {
			said := o.Email + " is an operator."
			if !o.Passkey {
				said += "\nIt has no passkey yet, and the first one is made by a mail: have it added at /account at once."
			}
			return said
		}),
		list,
		roleCommand(term, "remove MAIL", "Take the role operator away; the account stays", (*admin.Client).RemoveOperator, func(o control.Operator) string {
			return o.Email + " is no operator any more."
		}))
}

func roleCommand(term terminal, use, short string, change func(*admin.Client, context.Context, string) (control.Operator, error), done func(control.Operator) string) *cobra.Command {
	var asJSON bool
	cmd := clientCommand(use, short, commandline.Exactly("a MAIL address"), func(ctx context.Context, c *admin.Client, args []string) error {
		operator, err := change(c, ctx, args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(operator)
		}
		fmt.Fprintln(term.out, done(operator))
		return nil
	})
	jsonFlag(cmd, &asJSON)
	return cmd
}
