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

// complete has the shell complete apps, people, grants and app passwords by what there is, and
// files only where a file is meant. Where Porchlight is not running, or the owner
// secret is not to be had, nothing is offered.
func complete(root *cobra.Command, where *location) {
	none := cobra.ShellCompDirectiveNoFileComp
	root.CompletionOptions.DefaultShellCompDirective = &none
	names := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		state, err := c.State(ctx)
		for _, app := range state.Apps {
			out = append(out, cobra.CompletionWithDesc(app.Name, printable(app.Label)))
		}
		return out, err
	})
	labels := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		state, err := c.State(ctx)
		for _, app := range state.Apps {
			out = append(out, printable(app.Label))
		}
		return out, err
	})
	people := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		all, err := c.People(ctx)
		for _, p := range all.Members {
			out = append(out, cobra.CompletionWithDesc(printable(p.Email), p.Status))
		}
		return out, err
	})
	grants := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		all, err := c.Grants(ctx)
		for _, g := range all {
			out = append(out, cobra.CompletionWithDesc(g.ID, printable(g.ClientName+" of "+g.Email)))
		}
		return out, err
	})
	passwords := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		all, err := c.Passwords(ctx)
		for _, p := range all {
			out = append(out, cobra.CompletionWithDesc(p.ID, printable(p.Name+" of "+p.Email+", "+p.AppName)))
		}
		return out, err
	})
	knocks := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		all, err := c.Knocks(ctx)
		for _, k := range all {
			out = append(out, cobra.CompletionWithDesc(k.ID, printable(k.Email+", "+k.App)))
		}
		return out, err
	})
	users := offer(where, func(ctx context.Context, c *agentapi.Client) (out []cobra.Completion, err error) {
		state, err := c.State(ctx)
		for _, u := range state.Users {
			out = append(out, cobra.CompletionWithDesc(printable(u.Name), u.Standing))
		}
		return out, err
	})
	for path, by := range map[string]cobra.CompletionFunc{
		"approve": names, "deny": names, "revoke": names, "stop": names, "pause": names, "resume": names,
		"open": names, "options": names, "requests": names, "unshare": names, "publish": names, "unpublish": names, "passwords add": names,
		"people link": people, "people grant": people, "people withdraw": people, "people remove": people,
		"grants revoke": grants, "passwords revoke": passwords, "knocks answer": knocks,
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
		{"people invite", "app", labels}, {"people grant", "app", labels}, {"people withdraw", "app", labels},
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

// offer completes a word by what the owner sees.
func offer(where *location, list func(context.Context, *agentapi.Client) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(cmd.Context(), completeIn)
		defer cancel()
		client, err := where.owner(ctx)
		if err != nil {
			return nil, none
		}
		found, err := list(ctx, client)
		if err != nil {
			return nil, none
		}
		return found, none
	}
}
