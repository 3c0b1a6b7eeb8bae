package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func knocksCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "knocks",
		Short: "See who asks to be let in, and answer",
		Long: `See who asks to be let in, and answer. They are signed in with the address shown
and wait on the page that told them they may not open the app.

Only people whom this computer knows can ask, unless you let everybody:
porchlight settings --strangers-knock`,
		Example: `  porchlight knocks
  porchlight knocks answer ID --today     until midnight
  porchlight knocks answer ID --never     and never hear of this person again`,
	}
	cmd.AddCommand(answerKnockCommand(c))
	return listCommand(c, cmd, "List who waits for an answer, oldest first", (*agentapi.Client).Knocks, c.printKnocks)
}

func answerKnockCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "answer ID --today|--always|--no|--never",
		Short: "Let somebody in who asks, or not",
		Long: `Let somebody in who asks, or not. Somebody you have let in before can open the app at
once; everybody else is invited, and accepts by one click on the page they wait on.`,
		Example: "  porchlight knocks answer ID --today",
		Args:    commandline.Exactly("the ID of the knock"),
	}
	f := cmd.Flags()
	f.Bool(agentapi.KnockToday, false, "let them in until midnight, local time")
	f.Bool(agentapi.KnockAlways, false, "let them in until you take it away")
	f.Bool(agentapi.KnockNo, false, "do not, and hear nothing of them and this app for 30 days")
	f.Bool(agentapi.KnockNever, false, "do not, and hear nothing of them until you invite them")
	answers := []string{agentapi.KnockToday, agentapi.KnockAlways, agentapi.KnockNo, agentapi.KnockNever}
	answer := ""
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		given := 0
		for _, a := range answers {
			if yes, _ := f.GetBool(a); yes {
				answer, given = a, given+1
			}
		}
		if given != 1 {
			return commandline.Usagef("%s needs one of --today, --always, --no and --never", cmd.CommandPath())
		}
		return nil
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.KnockAnswered, error) {
		return client.AnswerKnock(ctx, args[0], answer)
	}, func(done agentapi.KnockAnswered, _ []string) error {
		c.printKnockAnswered(done, answer)
		return nil
	})
}

// printKnockAnswered says what an answer did, and what comes next.
func (t *terminal) printKnockAnswered(done agentapi.KnockAnswered, answer string) {
	who, app := printable(done.Email), printable(done.App)
	switch {
	case answer == agentapi.KnockNever:
		t.line("You hear nothing more of %s, until you invite them.", who)
		return
	case answer == agentapi.KnockNo:
		t.line("%s is not let in. They see no answer.", who)
		return
	case done.Status == agentapi.PersonActive:
		t.line("%s can open %s now%s.", who, app, untilWords(done))
	default:
		t.line("%s can open %s%s, after one click on the page they wait on.", who, app, untilWords(done))
	}
	if done.URL != "" {
		t.line("address: %s", done.URL)
	}
}

func untilWords(done agentapi.KnockAnswered) string {
	if done.Until == nil {
		return ""
	}
	return ", until " + agentapi.UntilWords(*done.Until, time.Now())
}

func (t *terminal) printKnocks(all []agentapi.Knock) error {
	return list(t, "Nobody asks to be let in.", []string{"WHO", "APP", "KNOWN", "SINCE", "ID"}, all, func(k agentapi.Knock) []string {
		return []string{k.Email, cmp.Or(k.App, "(any)"), yesNo(k.Known), moment(k.At), k.ID}
	})
}
