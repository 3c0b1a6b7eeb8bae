package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// cli is what every command works with: which agent it speaks to, and where it
// prints.
type cli struct {
	*location
	*terminal
}

// command gives cmd what every command does that prints one result: do makes it,
// and say prints it for people; with --json it is printed as it is. A result may itself
// say that it is a failure once it is printed. A cmd that says of no arguments takes none.
func command[T any](c cli, cmd *cobra.Command, do func(context.Context, []string) (T, error), say func(T, []string) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = commandline.Exactly()
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		result, err := do(cmd.Context(), args)
		switch {
		case err != nil:
			return err
		case *asJSON:
			err = c.json(result)
		default:
			err = say(result, args)
		}
		if outcome, ok := any(result).(interface{ failed() error }); ok && err == nil {
			return outcome.failed()
		}
		return err
	}
	return cmd
}

func jsonFlag(cmd *cobra.Command) *bool { return cmd.Flags().Bool("json", false, "print JSON") }

// programCommand is a command that asks the agent what it tells any program.
func programCommand[T any](c cli, cmd *cobra.Command, ask func(context.Context, *agentapi.Client, []string) (T, error), say func(T, []string) error) *cobra.Command {
	return command(c, cmd, func(ctx context.Context, args []string) (result T, err error) {
		client, err := c.open()
		if err != nil {
			return result, err
		}
		return ask(ctx, client, args)
	}, say)
}

// ownerCommand is a command that asks the agent as its owner.
func ownerCommand[T any](c cli, cmd *cobra.Command, ask func(context.Context, *agentapi.Client, []string) (T, error), say func(T, []string) error) *cobra.Command {
	return command(c, cmd, func(ctx context.Context, args []string) (result T, err error) {
		client, err := c.owner(ctx)
		if err != nil {
			return result, err
		}
		result, err = ask(ctx, client, args)
		if agentapi.IsNoApp(err) && len(args) > 0 {
			err = meant(ctx, client, args[0], err)
		}
		return result, err
	}, say)
}

// meant is err, of a name that no app has, with those that look alike.
func meant(ctx context.Context, client *agentapi.Client, typed string, err error) error {
	state, failed := client.State(ctx)
	names := make([]string, len(state.Apps))
	for i, app := range state.Apps {
		names[i] = app.Name
	}
	alike := commandline.Alike(typed, names)
	if failed != nil || len(alike) == 0 {
		return err
	}
	return agentapi.Errorf(agentapi.CodeNotFound, "%s Did you mean %s?", err, strings.Join(alike, " or "))
}

// listCommand is cmd, which shows a list when it is given no verb of its own, with
// the verb "list", which does the same. listed describes that one.
func listCommand[T any](c cli, cmd *cobra.Command, listed string, ask func(*agentapi.Client, context.Context) (T, error), say func(T) error) *cobra.Command {
	list := func(cmd *cobra.Command) *cobra.Command {
		return ownerCommand(c, cmd, all(ask), func(listed T, _ []string) error { return say(listed) })
	}
	cmd.Args = commandline.NoCommand
	cmd.AddCommand(list(&cobra.Command{Use: "list", Short: listed}))
	return list(cmd)
}

// all asks what takes nothing.
func all[T any](ask func(*agentapi.Client, context.Context) (T, error)) func(context.Context, *agentapi.Client, []string) (T, error) {
	return func(ctx context.Context, client *agentapi.Client, _ []string) (T, error) { return ask(client, ctx) }
}

// of asks what takes one name, the first argument.
func of[T any](ask func(*agentapi.Client, context.Context, string) (T, error)) func(context.Context, *agentapi.Client, []string) (T, error) {
	return func(ctx context.Context, client *agentapi.Client, args []string) (T, error) {
		return ask(client, ctx, args[0])
	}
}

// called is of, for what is named otherwise than the agent does: find knows its id.
func called[T any](find func(context.Context, *agentapi.Client, string) (string, error), ask func(*agentapi.Client, context.Context, string) (T, error)) func(context.Context, *agentapi.Client, []string) (T, error) {
	return func(ctx context.Context, client *agentapi.Client, args []string) (result T, err error) {
		id, err := find(ctx, client, args[0])
		if err != nil {
			return result, err
		}
		return ask(client, ctx, id)
	}
}

// verb is a command of no flags, with the arguments that it needs.
func verb(use, short string, args ...string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: commandline.Exactly(args...)}
}

// done is the result of a call that is answered by an error or by nothing.
func done(err error) (agentapi.Done, error) { return agentapi.Done{OK: true}, err }

// doing is a call of one name that is answered by an error or by nothing.
func doing(do func(*agentapi.Client, context.Context, string) error) func(*agentapi.Client, context.Context, string) (agentapi.Done, error) {
	return func(client *agentapi.Client, ctx context.Context, name string) (agentapi.Done, error) {
		return done(do(client, ctx, name))
	}
}

// says prints one sentence whatever the result, with the command's arguments in it.
func says[T any](c cli, format string) func(T, []string) error {
	return func(_ T, args []string) error {
		words := make([]any, len(args))
		for i, arg := range args {
			words[i] = printable(arg)
		}
		c.line(format, words...)
		return nil
	}
}

// endCommand is a verb that ends access to an app and says how much it closed.
func endCommand(c cli, use, short string, end func(*agentapi.Client, context.Context, string) (agentapi.Closed, error), said string) *cobra.Command {
	cmd := verb(use, short, "the NAME of the app")
	return ownerCommand(c, cmd, of(end), func(closed agentapi.Closed, args []string) error {
		c.line(said, args[0])
		c.closed(closed)
		return nil
	})
}

// closed says how many connections ended, and how soon.
func (t *terminal) closed(closed agentapi.Closed) {
	if closed.Closed > 0 {
		t.line("Open connections closed: %d, in %d ms.", closed.Closed, closed.Milliseconds)
	}
}
