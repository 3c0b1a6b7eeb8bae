package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func peopleCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	list := func(cmd *cobra.Command, _ []string) error {
		client, err := where.owner(cmd.Context())
		if err != nil {
			return err
		}
		people, err := client.People(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(people)
		}
		return printPeople(term, people)
	}
	cmd := &cobra.Command{
		Use:   "people",
		Short: "Say who may reach this computer, and change it",
		Long: `Say who may reach this computer, and change it.

Where a person is asked for, give their account id or their e-mail address. Apps
are named by their labels, as 'porchlight apps' shows them.`,
		Example: `  porchlight people
  porchlight people invite bob@example.com --app Notes --app Wiki
  porchlight people withdraw bob@example.com --app Wiki
  porchlight people remove bob@example.com`,
		Args: commandline.NoCommand,
		RunE: list,
	}
	listing := &cobra.Command{
		Use:   "list",
		Short: "List everybody, removed people included",
		Args:  commandline.Exactly(),
		RunE:  list,
	}
	jsonFlag(cmd, &asJSON)
	jsonFlag(listing, &asJSON)
	cmd.AddCommand(listing, inviteCommand(where, term), grantCommand(where, term), withdrawCommand(where, term), removeCommand(where, term))
	return cmd
}

func inviteCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	var apps []string
	cmd := &cobra.Command{
		Use:   "invite EMAIL --app LABEL...",
		Short: "Invite somebody to apps",
		Long: `Invite somebody to apps: they get a mail with a link, and can open these apps
and nothing else once they have clicked it. Somebody who was invited before gets
the apps added; somebody who was removed starts again with these alone.`,
		Example: "  porchlight people invite bob@example.com --app Notes --app Wiki",
		Args:    commandline.Exactly("the EMAIL of the person"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(apps) == 0 {
				return commandline.Usagef("%s needs --app, the label of an app they may open", cmd.CommandPath())
			}
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			invitation, err := client.Invite(cmd.Context(), agentapi.InviteRequest{Email: args[0], Apps: apps})
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(invitation)
			}
			term.line("%s is invited to %s, at %s", printable(invitation.Email), printable(strings.Join(apps, ", ")), invitation.URL)
			if account, err := client.Account(cmd.Context()); err == nil && account.Local {
				term.remark("Nobody else can reach this computer until it is connected. The invitation is in: porchlight outbox")
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&apps, "app", nil, "label of an app they may open; give it again for more")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// onceThey is what still keeps somebody out who was given an app, by status.
var onceThey = map[string]string{
	agentapi.PersonPending: ", once they have clicked their invitation",
	agentapi.PersonRevoked: ", but is removed: invite them to let them in again",
}

func grantCommand(where *location, term *terminal) *cobra.Command {
	return changeCommand(where, term, true, &cobra.Command{
		Use:     "grant ID --app LABEL",
		Short:   "Let somebody open one more app",
		Example: "  porchlight people grant bob@example.com --app Wiki",
	})
}

func withdrawCommand(where *location, term *terminal) *cobra.Command {
	return changeCommand(where, term, false, &cobra.Command{
		Use:     "withdraw ID --app LABEL",
		Short:   "Take one app away from somebody, at once",
		Example: "  porchlight people withdraw bob@example.com --app Wiki",
	})
}

// changeCommand gives one app or takes it away.
func changeCommand(where *location, term *terminal, granted bool, cmd *cobra.Command) *cobra.Command {
	var asJSON bool
	var app string
	cmd.Args = commandline.Exactly("the ID or e-mail address of the person")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if app == "" {
			return commandline.Usagef("%s needs --app, the label of the app", cmd.CommandPath())
		}
		client, err := where.owner(cmd.Context())
		if err != nil {
			return err
		}
		id, err := accountID(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		changed, err := client.Grant(cmd.Context(), agentapi.GrantRequest{AccountID: id, App: app, Granted: granted})
		if err != nil {
			return err
		}
		switch {
		case asJSON:
			return term.json(changed)
		case granted:
			term.line("%s may open %s%s", printable(changed.Person.Email), printable(app), onceThey[changed.Person.Status])
		default:
			term.line("%s cannot open %s any more%s", printable(changed.Person.Email), printable(app), closedWords(changed.Closed, changed.Milliseconds))
		}
		return nil
	}
	cmd.Flags().StringVar(&app, "app", "", "label of the app")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func removeCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Take the whole computer away from somebody, at once",
		Long: `Take the whole computer away from somebody, at once: what they have open is
closed, and invitations they have not used are void. Only a new invitation lets
them in again.`,
		Example: "  porchlight people remove bob@example.com",
		Args:    commandline.Exactly("the ID or e-mail address of the person"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			id, err := accountID(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			changed, err := client.Remove(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(changed)
			}
			term.line("%s is removed%s", printable(changed.Person.Email), closedWords(changed.Closed, changed.Milliseconds))
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// accountID is what a person was named by, or the id behind an e-mail address.
func accountID(ctx context.Context, client *agentapi.Client, named string) (string, error) {
	if !strings.Contains(named, "@") {
		return named, nil
	}
	people, err := client.People(ctx)
	if err != nil {
		return "", err
	}
	for _, p := range people.Members {
		if strings.EqualFold(p.Email, named) {
			return p.AccountID, nil
		}
	}
	return "", agentapi.Errorf(agentapi.CodeNotFound, "%s is not on the list. See: porchlight people", printable(named))
}

// closedWords says what ended, and how soon.
func closedWords(closed, milliseconds int) string {
	switch closed {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; 1 open connection was closed in %d ms", milliseconds)
	}
	return fmt.Sprintf("; %d open connections were closed in %d ms", closed, milliseconds)
}

func printPeople(term *terminal, people agentapi.People) error {
	rows := make([][]string, len(people.Members))
	for i, p := range people.Members {
		apps := strings.Join(p.Apps, ", ")
		if p.Role == agentapi.RoleOwner {
			apps = "everything"
		}
		rows[i] = []string{p.Email, personWord(p), apps, p.AccountID}
	}
	if err := term.table([]string{"EMAIL", "STATE", "MAY OPEN", "ID"}, rows); err != nil {
		return err
	}
	if len(rows) <= 1 {
		term.line("Nobody else yet. Try: porchlight people invite bob@example.com --app LABEL")
	}
	return nil
}

func personWord(p agentapi.Person) string {
	switch {
	case p.Role == agentapi.RoleOwner:
		return "owner"
	case p.Status == agentapi.PersonPending:
		return "invited"
	case p.Status == agentapi.PersonRevoked:
		return "removed"
	}
	return "member"
}
