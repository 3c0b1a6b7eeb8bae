package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func peopleCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "people",
		Short: "Say who may reach this computer, and change it",
		Long: `Say who may reach this computer, and change it.

Where a person is asked for, give their account id or their e-mail address. An app
is named by its label, its name or its address, as 'porchlight apps' shows them.`,
		Example: `  porchlight people
  porchlight people invite bob@example.com --app Notes --app Wiki
  porchlight people link bob@example.com
  porchlight people withdraw bob@example.com --app Wiki
  porchlight people remove bob@example.com`,
	}
	cmd.AddCommand(inviteCommand(c), linkCommand(c), giveCommand(c), withdrawCommand(c), removeCommand(c))
	return listCommand(c, cmd, "List everybody, removed people included", (*agentapi.Client).People, c.printPeople)
}

const invitation = ", once they have clicked their invitation"

// onceThey is what still keeps somebody out who was given an app, by status.
var onceThey = map[string]string{
	agentapi.PersonPending: invitation,
	agentapi.PersonRemoved: ", but is removed: invite them to let them in again",
}

func giveCommand(c cli) *cobra.Command {
	return changeCommand(c, true, &cobra.Command{
		Use:   "grant ID --app LABEL",
		Short: "Let somebody open one more app, or open it longer",
		Long: `Let somebody open one more app. With --until it ends then; what they may open
already is prolonged by it, or ends sooner, and without it keeps the end it has.`,
		Example: `  porchlight people grant bob@example.com --app Wiki
  porchlight people grant lena@example.com --app Photos --until 2030-01-31T18:00:00Z
  porchlight people grant lena@example.com --app Photos --until never`,
	})
}

func withdrawCommand(c cli) *cobra.Command {
	return changeCommand(c, false, &cobra.Command{
		Use:     "withdraw ID --app LABEL",
		Short:   "Take one app away from somebody, at once",
		Example: "  porchlight people withdraw bob@example.com --app Wiki",
	})
}

// changeCommand gives one app or takes it away.
func changeCommand(c cli, granted bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = commandline.Exactly("the ID or e-mail address of the person")
	app := cmd.Flags().String("app", "", "label, name or address of the app")
	until := new(string)
	if granted {
		until = untilFlag(cmd, "it ends for them")
	}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *app == "" {
			return commandline.Usagef("%s needs --app, the label of the app", cmd.CommandPath())
		}
		return checkUntil(cmd)
	}
	address := ""
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.PersonChanged, error) {
		id, err := accountID(ctx, client, args[0])
		if err != nil {
			return agentapi.PersonChanged{}, err
		}
		apps, _, err := appsCalled(ctx, client, *app)
		if err != nil {
			return agentapi.PersonChanged{}, err
		}
		*app, address = apps[0].Label, apps[0].URL
		return client.SetAccess(ctx, agentapi.AccessRequest{AccountID: id, App: *app, Granted: granted, Until: *until})
	}, func(changed agentapi.PersonChanged, _ []string) error {
		if granted {
			c.line("%s may open %s%s%s", printable(changed.Person.Email), printable(*app), endWords(changed.Person, *app), onceThey[changed.Person.Status])
			if address != "" && changed.Person.Status != agentapi.PersonRemoved {
				c.line("address: %s", address)
			}
		} else {
			c.line("%s cannot open %s any more%s", printable(changed.Person.Email), printable(*app), closedWords(changed.Closed, changed.Milliseconds))
		}
		return nil
	})
}

func removeCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Take the whole computer away from somebody, at once",
		Long: `Take the whole computer away from somebody, at once: what they have open is
closed, and invitations they have not used are void. Only a new invitation lets
them in again.`,
		Example: "  porchlight people remove bob@example.com",
		Args:    commandline.Exactly("the ID or e-mail address of the person"),
	}
	return ownerCommand(c, cmd, called(accountID, (*agentapi.Client).Remove), func(changed agentapi.PersonChanged, _ []string) error {
		c.line("%s is removed%s", printable(changed.Person.Email), closedWords(changed.Closed, changed.Milliseconds))
		return nil
	})
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
	if id := idOf(people.Members, named); id != "" {
		return id, nil
	}
	return "", agentapi.Errorf(agentapi.CodeNotFound, "%s is not on the list. See: porchlight people", printable(named))
}

// idOf is the id behind an e-mail address; empty for nobody's. Whose account the server
// removed may be there twice, once more since: who is not removed is meant.
func idOf(members []agentapi.Person, email string) (id string) {
	for _, p := range members {
		if strings.EqualFold(p.Email, email) {
			if id = p.AccountID; p.Status != agentapi.PersonRemoved {
				return id
			}
		}
	}
	return id
}

// revoked says that what an id named has ended, or what of that is known.
func (t *terminal) revoked(done, what, id string, closed agentapi.Closed) {
	if closed.Uncertain {
		t.line("The control plane does not answer, so nobody here knows whether %q is %s. If it is, it has ended here, and ends there as soon as that can be told.", id, what)
		return
	}
	t.line("%s%s", done, closedWords(closed.Closed, closed.Milliseconds))
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

func (t *terminal) printPeople(people agentapi.People) error {
	rows := make([][]string, len(people.Members))
	for i, p := range people.Members {
		apps := mayOpen(p)
		if p.Role == agentapi.RoleOwner {
			apps = "everything"
		}
		rows[i] = []string{p.Email, personWord(p), apps, p.AccountID}
	}
	if err := t.table([]string{"EMAIL", "STATE", "MAY OPEN", "ID"}, rows); err != nil {
		return err
	}
	if len(rows) <= 1 {
		t.line("Nobody else yet. Try: porchlight people invite bob@example.com --app LABEL")
	}
	return nil
}

func personWord(p agentapi.Person) string {
	switch {
	case p.Role == agentapi.RoleOwner:
		return "owner"
	case p.Status == agentapi.PersonPending:
		return "invited"
	case p.Status == agentapi.PersonRemoved:
		return "removed"
	}
	return "member"
}
