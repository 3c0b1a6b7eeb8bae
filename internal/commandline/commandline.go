// Package commandline is how Porchlight's two command lines end, and print: with one of
// four exit codes, or that of a program they ran (Passed), with a sentence where
// something was wrong, and with tables for people and JSON for programs. What a command
// does comes from the programs; which words on the line make no sense, and what is said
// then, is here, so that both say it alike.
package commandline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes besides 0; scripts rely on them.
const (
	ExitRefused    = 1 // what was asked for was not done
	ExitUsage      = 2 // the line, or a configuration, cannot be carried out as it was written
	ExitNotRunning = 3 // there is nothing running that could do it
)

// usageError is a line that cannot be carried out as it was written.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks an error as one of how the line was written.
func Usage(err error) error { return usageError{err} }

// Usagef makes such an error.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Passed is the end of a program that ran another one: with its code, and with nothing
// more to say.
type Passed int

func (p Passed) Error() string { return fmt.Sprintf("exit status %d", int(p)) }

// FlagError is for cobra's SetFlagErrorFunc. Where a number was expected it names
// what was typed, and not how it was read. A flag that is unknown because the word
// before it is not a command is no fault of the flag.
func FlagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return NoCommand(cmd, words)
	}
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		what, _, _ := strings.Cut(err.Error(), ": strconv.")
		if number.Func == "ParseBool" {
			return Usagef("%s: it must be true or false", what)
		}
		return Usagef("%s: it must be a whole number", what)
	}
	return usageError{err}
}

// Exactly is cobra.ExactArgs with a sentence, which names what is missing.
func Exactly(names ...string) cobra.PositionalArgs {
	most := AtMost(names...)
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return Usagef("%s needs %s", cmd.CommandPath(), names[len(args)])
		}
		return most(cmd, args)
	}
}

// AtMost is cobra.MaximumNArgs with a sentence.
func AtMost(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return Usagef("%s does not know what to do with %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

// NoCommand refuses what follows the name of a program, or of a command with
// commands of its own, and is none of them. It names the ones that look alike, or
// else those of this name one level below.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	said := fmt.Sprintf("there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], cmd.Root().Name()+" "))
	cmd.SuggestionsMinimumDistance = 2 // letters
	alike := cmd.SuggestionsFor(args[0])
	if len(alike) == 0 {
		alike = below(cmd, args[0])
	}
	if args[0] == "version" && cmd.Version != "" {
		alike = []string{"--version"}
	}
	if len(alike) > 0 {
		said += ". Did you mean " + strings.Join(alike, " or ") + "?"
	}
	return Usagef("%s", said)
}

// Alike are the names that a word could have been meant for.
func Alike(word string, names []string) []string {
	parent := &cobra.Command{SuggestionsMinimumDistance: 2} // letters
	for _, name := range names {
		parent.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return parent.SuggestionsFor(word)
}

// below finds the commands of this name under those of cmd: "people invite" for invite.
func below(cmd *cobra.Command, name string) (found []string) {
	for _, c := range cmd.Commands() {
		for _, sub := range c.Commands() {
			if sub.Name() == name && sub.IsAvailableCommand() {
				found = append(found, c.Name()+" "+name)
			}
		}
	}
	return found
}

// Program is a command line to be run once.
type Program struct {
	Root     *cobra.Command // silent about errors and usage
	Out, Err io.Writer
	// NotRunning is wrapped by errors that end the program with ExitNotRunning.
	NotRunning error
	// Sentence says an error to a person; nil for its own words.
	Sentence func(error) string
}

// Run carries the line out and returns the exit code.
func (p Program) Run(ctx context.Context, args []string) int {
	p.Root.SetArgs(args)
	p.Root.SetOut(p.Out)
	p.Root.SetErr(p.Err)
	p.refuseOthers()
	cmd, err := p.Root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if passed, ok := errors.AsType[Passed](err); ok {
		return int(passed)
	}
	said := err.Error()
	if p.Sentence != nil {
		said = p.Sentence(err)
	}
	program := p.Root.Name()
	code := ExitCode(err, p.NotRunning)
	if code == ExitUsage {
		// Such a sentence mostly begins with the command's path, which begins with this name.
		said = strings.TrimPrefix(said, program+" ") + "\nTry '" + cmd.CommandPath() + " --help'."
	}
	fmt.Fprintln(p.Err, program+": "+said)
	return code
}

// refuseOthers has the commands that cobra brings along refuse what they do not know, like
// any other.
func (p Program) refuseOthers() {
	help := &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, left, err := p.Root.Find(args)
			if err == nil && len(left) == 0 {
				return cmd.Help()
			}
			return NoCommand(cmd, left)
		},
	}
	p.Root.SetHelpCommand(help)
	p.Root.InitDefaultCompletionCmd()
	if completion, _, err := p.Root.Find([]string{"completion"}); err == nil && completion != p.Root {
		completion.Args = NoCommand
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}

// ExitCode is what an error ends a program with.
func ExitCode(err, notRunning error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return ExitUsage
	}
	if notRunning != nil && errors.Is(err, notRunning) {
		return ExitNotRunning
	}
	return ExitRefused
}
