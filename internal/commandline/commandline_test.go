package commandline

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

var errAway = errors.New("it is not running")

// program is a small one with every way to end.
func program(out, err *bytes.Buffer) Program {
	root := &cobra.Command{Use: "lamp", Version: "1", SilenceErrors: true, SilenceUsage: true, Args: NoCommand, RunE: func(*cobra.Command, []string) error { return nil }}
	root.SetFlagErrorFunc(FlagError)
	light := &cobra.Command{Use: "light NAME", Args: Exactly("the NAME of a lamp"), RunE: func(_ *cobra.Command, args []string) error {
		switch args[0] {
		case "away":
			return fmt.Errorf("the porch: %w", errAway)
		case "broken":
			return errors.New("the bulb is broken")
		case "nowhere":
			return fmt.Errorf("the line: %w", Usagef("%s is no room", args[0]))
		}
		return nil
	}}
	light.Flags().Int("watts", 0, "")
	light.Flags().Bool("dim", false, "")
	rooms := &cobra.Command{Use: "rooms", Args: NoCommand, RunE: func(*cobra.Command, []string) error { return nil }}
	listing := &cobra.Command{Use: "list", RunE: func(*cobra.Command, []string) error { return nil }}
	listing.Flags().Int("floor", 0, "")
	rooms.AddCommand(listing, &cobra.Command{Use: "paint", RunE: func(*cobra.Command, []string) error { return nil }})
	root.AddCommand(rooms)
	root.AddCommand(light, &cobra.Command{Use: "list [ROOM]", Args: AtMost("the ROOM"), RunE: func(*cobra.Command, []string) error { return nil }})
	return Program{Root: root, Out: out, Err: err, NotRunning: errAway}
}

func TestHowProgramsEnd(t *testing.T) {
	t.Parallel()
	const try, tryLight, tryList = "\nTry 'lamp --help'.", "\nTry 'lamp light --help'.", "\nTry 'lamp list --help'."
	for _, c := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{}, 0, ""},
		{[]string{"light", "porch"}, 0, ""},
		{[]string{"list"}, 0, ""},
		{[]string{"list", "hall"}, 0, ""},
		{[]string{"light", "broken"}, ExitRefused, "the bulb is broken"},
		{[]string{"light", "away"}, ExitNotRunning, "the porch: it is not running"},
		{[]string{"light", "nowhere"}, ExitUsage, "the line: nowhere is no room" + tryLight},
		{[]string{"ligth"}, ExitUsage, `there is no command "ligth". Did you mean light or list?` + try},
		{[]string{"zzz"}, ExitUsage, `there is no command "zzz"` + try},
		{[]string{"help", "ligth"}, ExitUsage, `there is no command "ligth". Did you mean light or list?` + "\nTry 'lamp help --help'."},
		{[]string{"help", "rooms", "lst"}, ExitUsage, `there is no command "rooms lst". Did you mean list?` + "\nTry 'lamp help --help'."},
		{[]string{"completion", "fsh"}, ExitUsage, `there is no command "completion fsh". Did you mean bash or zsh or fish?` + "\nTry 'lamp completion --help'."},
		{[]string{"paint"}, ExitUsage, `there is no command "paint". Did you mean rooms paint?` + try},
		{[]string{"version"}, ExitUsage, `there is no command "version". Did you mean --version?` + try},
		{[]string{"rooms", "lst"}, ExitUsage, `there is no command "rooms lst". Did you mean list?` + "\nTry 'lamp rooms --help'."},
		{[]string{"rooms", "lst", "--floor", "1"}, ExitUsage, `there is no command "rooms lst". Did you mean list?` + "\nTry 'lamp rooms --help'."},
		{[]string{"light", "porch", "--dim=maybe"}, ExitUsage, `invalid argument "maybe" for "--dim" flag: it must be true or false` + tryLight},
		{[]string{"light"}, ExitUsage, "light needs the NAME of a lamp" + tryLight},
		{[]string{"light", "porch", "hall"}, ExitUsage, `light does not know what to do with "hall"` + tryLight},
		{[]string{"list", "hall", "porch"}, ExitUsage, `list does not know what to do with "porch"` + tryList},
		{[]string{"light", "porch", "--watts", "many"}, ExitUsage, `invalid argument "many" for "--watts" flag: it must be a whole number` + tryLight},
		{[]string{"light", "porch", "--colour"}, ExitUsage, "unknown flag: --colour" + tryLight},
	} {
		var out, err bytes.Buffer
		if c.said != "" {
			c.said = "lamp: " + c.said + "\n"
		}
		if code := program(&out, &err).Run(t.Context(), c.args); code != c.code || err.String() != c.said || out.Len() != 0 {
			t.Errorf("%q: exit %d, %q, want %d, %q", c.args, code, err.String(), c.code, c.said)
		}
	}
}

func TestWordsOfTheProgram(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	p := program(&out, &err)
	p.Sentence = func(error) string { return "Start it first." }
	if code := p.Run(t.Context(), []string{"light", "away"}); code != ExitNotRunning || err.String() != "lamp: Start it first.\n" {
		t.Errorf("exit %d, %q", code, err.String())
	}
}
