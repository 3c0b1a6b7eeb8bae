package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
)

// completeIn bounds how long the shell waits for what could follow.
const completeIn = 2 * time.Second

// complete has the shell complete apps, people, grants, app passwords and devices by what there is, and
// files only where a file is meant. Where Porchlight is not running, or the owner
// secret is not to be had, nothing is offered.
func complete(root *cobra.Command, where *location) {
	none := cobra.ShellCompDirectiveNoFileComp
	root.CompletionOptions.DefaultShellCompDirective = &none
	apps := func(s agentapi.OwnerState) []agentapi.OwnerApp { return s.Apps }
	names := offer(where, (*agentapi.Client).State, apps, func(a agentapi.OwnerApp) cobra.Completion {
		return cobra.CompletionWithDesc(a.Name, printable(a.Label))
	})
	labels := offer(where, (*agentapi.Client).State, apps, func(a agentapi.OwnerApp) cobra.Completion { return printable(a.Label) })
	users := offer(where, (*agentapi.Client).State, func(s agentapi.OwnerState) []agentapi.LocalUser { return s.Users },
		func(u agentapi.LocalUser) cobra.Completion {
			return cobra.CompletionWithDesc(printable(u.Name), u.Standing)
		})
	people := offer(where, (*agentapi.Client).People, func(p agentapi.People) []agentapi.Person { return p.Members },
		func(p agentapi.Person) cobra.Completion {
			return cobra.CompletionWithDesc(printable(p.Email), p.Status)
		})
	groups := offer(where, (*agentapi.Client).Groups, itself[agentapi.Group], func(g agentapi.Group) cobra.Completion { return printable(g.Name) })
	grants := offer(where, (*agentapi.Client).Grants, itself[agentapi.Grant], func(g agentapi.Grant) cobra.Completion {
		return cobra.CompletionWithDesc(g.ID, printable(g.ClientName+" of "+g.Email))
	})
	passwords := offer(where, (*agentapi.Client).Passwords, itself[agentapi.AppPassword], func(p agentapi.AppPassword) cobra.Completion {
		return cobra.CompletionWithDesc(p.ID, printable(p.Name+" of "+p.Email+", "+p.AppName))
	})
	senders := offer(where, (*agentapi.Client).Senders, itself[agentapi.Sender], func(s agentapi.Sender) cobra.Completion {
		return cobra.CompletionWithDesc(s.ID, printable(s.Name+", "+s.AppName))
	})
	devices := offer(where, (*agentapi.Client).Devices, itself[agentapi.Device], func(d agentapi.Device) cobra.Completion {
		return cobra.CompletionWithDesc(d.ID, printable(d.Name+" of "+d.Email))
	})
	knocks := offer(where, (*agentapi.Client).Knocks, itself[agentapi.Knock], func(k agentapi.Knock) cobra.Completion {
		return cobra.CompletionWithDesc(k.ID, printable(k.Email+", "+k.App))
	})
	for path, by := range map[string]cobra.CompletionFunc{
		"approve": names, "deny": names, "unmute": names, "revoke": names, "stop": names, "pause": names, "resume": names,
		"open": names, "options": names, "requests": names, "unshare": names, "publish": names, "unpublish": names, "passwords add": names, "senders add": names,
		"people link": people, "people grant": people, "people withdraw": people, "people remove": people,
		"groups remove": groups, "groups join": groups, "groups leave": groups, "groups grant": groups, "groups withdraw": groups,
		"grants revoke": grants, "passwords revoke": passwords, "devices revoke": devices, "senders revoke": senders, "senders rotate": senders, "knocks answer": knocks,
		"users allow": users, "users deny": users, "users forget": users,
	} {
		find(root, path).ValidArgsFunction = first(by)
	}
	find(root, "run").ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a command, and files
		}
		return names(cmd, args, word)
	}
	for _, flag := range []struct {
		path, name string
		by         cobra.CompletionFunc
	}{
		{"share", "name", names}, {"settings", "quiet", cobra.FixedCompletions(kindNames(), none)},
		{"settings", "notify", cobra.FixedCompletions(agentapi.Levels(), none)},
		{"senders add", "kind", cobra.FixedCompletions(agentapi.SenderKinds(), none)},
		{"people invite", "app", labels}, {"people grant", "app", labels}, {"people withdraw", "app", labels},
		{"groups grant", "app", labels}, {"groups withdraw", "app", labels}, {"devices add", "app", labels},
	} {
		if err := find(root, flag.path).RegisterFlagCompletionFunc(flag.name, flag.by); err != nil {
			panic(err) // the flag is not there
		}
	}
	find(root, "export").ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
}

// kindNames are what settings --quiet takes.
func kindNames() (names []cobra.Completion) {
	for _, k := range agentapi.Kinds() {
		names = append(names, cobra.CompletionWithDesc(k.Name, k.About))
	}
	return names
}

// find is the command of a path below root, which has to be there.
func find(root *cobra.Command, path string) *cobra.Command {
	cmd, _, err := root.Find(strings.Fields(path))
	if err != nil || cmd.CommandPath() != root.Name()+" "+path {
		panic("there is no command " + path)
	}
	return cmd
}

// first completes the first argument alone.
func first(by cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return by(cmd, args, word)
	}
}

// offer completes a word by what the owner sees: asks for it, takes the items out of the
// answer, and shows each.
func offer[Answer, Item any](where *location, ask func(*agentapi.Client, context.Context) (Answer, error), items func(Answer) []Item, show func(Item) cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(cmd.Context(), completeIn)
		defer cancel()
		client, err := where.owner(ctx)
		if err != nil {
			return nil, none
		}
		answer, err := ask(client, ctx)
		if err != nil {
			return nil, none
		}
		for _, item := range items(answer) {
			found = append(found, show(item))
		}
		return found, none
	}
}

// itself is for an answer that is the items.
func itself[Item any](items []Item) []Item { return items }
