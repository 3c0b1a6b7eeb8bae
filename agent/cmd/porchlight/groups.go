package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func groupsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "Name people together, and open apps to all of them",
		Long: `Name people together, and open apps to all of them. Who leaves a group cannot open
what only it opened; what was taken from one person no group opens to them until
it is given to them again.

A GROUP is named by its name or id, a PERSON by address or account id.`,
		Example: `  porchlight groups add Family
  porchlight groups join Family bob@example.com
  porchlight groups grant Family --app Photos --until 2030-01-31
  porchlight groups leave Family bob@example.com`,
	}
	cmd.AddCommand(addGroupCommand(c), removeGroupCommand(c),
		memberCommand(c, "join", "Add a person to a group", "%s is in %s%s", (*agentapi.Client).JoinGroup),
		memberCommand(c, "leave", "Take a person out of a group, at once", "%s is not in %s any more%s", (*agentapi.Client).LeaveGroup),
		fillCommand(c), groupAppCommand(c, true), groupAppCommand(c, false))
	return listCommand(c, cmd, "List the groups", (*agentapi.Client).Groups, c.printGroups)
}

const theGroup = "the GROUP, by its name or id"

func addGroupCommand(c cli) *cobra.Command {
	return ownerCommand(c, verb("add NAME", "Make a group", "the NAME of the group"), func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.GroupChanged, error) {
		return client.AddGroup(ctx, agentapi.GroupNamed{Name: args[0]})
	}, func(changed agentapi.GroupChanged, _ []string) error {
		c.line("%s is there, with nobody in it. Try: porchlight groups join %q bob@example.com", printable(changed.Group.Name), printable(changed.Group.Name))
		return nil
	})
}

func removeGroupCommand(c cli) *cobra.Command {
	cmd := verb("remove GROUP", "Remove a group, and end what it opened, at once", theGroup)
	return ownerCommand(c, cmd, called(groupID, (*agentapi.Client).RemoveGroup), func(changed agentapi.GroupChanged, _ []string) error {
		c.line("%s is removed%s", printable(changed.Group.Name), closedWords(changed.Closed, changed.Milliseconds))
		return nil
	})
}

// fillCommand has a group of a provider fill one, or none.
func fillCommand(c cli) *cobra.Command {
	const from = "the group of a provider, as PROVIDER/GROUP, or none"
	cmd := verb("fill GROUP PROVIDER/GROUP", "Have who is in a provider's group be in one of yours, as the provider says at each sign-in", theGroup, from)
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (changed agentapi.GroupChanged, err error) {
		id, err := groupID(ctx, client, args[0])
		if err != nil {
			return changed, err
		}
		if args[1] == "none" {
			args[1] = ""
		}
		return client.FillGroup(ctx, id, agentapi.FillRequest{From: args[1]})
	}, func(changed agentapi.GroupChanged, _ []string) error {
		if changed.Group.From == "" {
			c.line("%s is filled by you alone%s", printable(changed.Group.Name), closedWords(changed.Closed, changed.Milliseconds))
			return nil
		}
		c.line("%s is filled by %s: of the people here, who is in that joins and leaves as the provider says when they sign in", printable(changed.Group.Name), printable(changed.Group.From))
		return nil
	})
}

// memberCommand has one person join or leave.
func memberCommand(c cli, name, short, said string, change func(*agentapi.Client, context.Context, string, agentapi.MemberRequest) (agentapi.GroupChanged, error)) *cobra.Command {
	cmd := verb(name+" GROUP PERSON", short, theGroup, "the PERSON, by address or account id")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (changed agentapi.GroupChanged, err error) {
		id, err := groupID(ctx, client, args[0])
		if err != nil {
			return changed, err
		}
		account, err := accountID(ctx, client, args[1])
		if err != nil {
			return changed, err
		}
		return change(client, ctx, id, agentapi.MemberRequest{AccountID: account})
	}, func(changed agentapi.GroupChanged, args []string) error {
		c.line(said, printable(args[1]), printable(changed.Group.Name), closedWords(changed.Closed, changed.Milliseconds))
		return nil
	})
}

// groupAppCommand has a group open an app, or open it no more.
func groupAppCommand(c cli, granted bool) *cobra.Command {
	cmd := &cobra.Command{Use: "withdraw GROUP --app LABEL", Short: "Have a group open an app no more, at once"}
	until := new(string)
	if granted {
		cmd.Use, cmd.Short = "grant GROUP --app LABEL", "Have a group open one more app, or open it longer"
		until = untilFlag(cmd, "it ends for all of the group")
	}
	app := cmd.Flags().String("app", "", "label, name or address of the app")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 && *app == "" { // as people type it, too
			*app, args = args[1], args[:1]
		}
		return commandline.Exactly(theGroup)(cmd, args)
	}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *app == "" {
			return commandline.Usagef("%s needs --app, the label of the app", cmd.CommandPath())
		}
		return checkUntil(cmd)
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (changed agentapi.GroupChanged, err error) {
		id, err := groupID(ctx, client, args[0])
		if err != nil {
			return changed, err
		}
		apps, _, err := appsCalled(ctx, client, *app)
		if err != nil {
			return changed, err
		}
		*app = apps[0].Label
		if !granted {
			return client.WithdrawGroup(ctx, id, agentapi.GroupAppRequest{App: *app})
		}
		return client.GrantGroup(ctx, id, agentapi.GroupAppRequest{App: *app, Until: *until})
	}, func(changed agentapi.GroupChanged, _ []string) error {
		g := changed.Group
		if granted {
			c.line("%s opens %s%s%s", printable(g.Name), printable(*app), endOfLabel(g.Until, *app), closedWords(changed.Closed, changed.Milliseconds))
		} else {
			c.line("%s does not open %s any more%s", printable(g.Name), printable(*app), closedWords(changed.Closed, changed.Milliseconds))
		}
		return nil
	})
}

// groupID is the id of the group with a name, in whatever capitals, or that id.
func groupID(ctx context.Context, client *agentapi.Client, named string) (string, error) {
	groups, err := client.Groups(ctx)
	if err != nil {
		return "", err
	}
	for _, g := range groups {
		if g.ID == named || strings.EqualFold(g.Name, strings.TrimSpace(named)) {
			return g.ID, nil
		}
	}
	return "", agentapi.Errorf(agentapi.CodeNotFound, "There is no group called %q. See: porchlight groups", printable(named))
}

func (t *terminal) printGroups(groups []agentapi.Group) error {
	return list(t, "There is no group. Try: porchlight groups add Family", []string{"GROUP", "OPENS", "PEOPLE"}, groups, func(g agentapi.Group) []string {
		people := make([]string, len(g.Members))
		for i, m := range g.Members {
			people[i] = m.Email + map[string]string{agentapi.PersonPending: " (invited)"}[m.Status]
		}
		if g.From != "" {
			people = append(people, "filled by "+g.From)
		}
		return []string{g.Name, labelsWithEnds(g.Apps, g.Until, g.Ended), strings.Join(people, ", ")}
	})
}
