package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
)

// activityWords say what happened. {by} stands for who did it, {what} for what it is
// about beside a person and an app.
var activityWords = map[string]string{
	agentapi.ActivityOpened:    "opened",
	agentapi.ActivityClient:    "opened with {by}",
	agentapi.ActivityInvited:   "was invited by {by}",
	agentapi.ActivityGiven:     "was given this app by {by}",
	agentapi.ActivityWithdrawn: "had this app taken away by {by}",
	agentapi.ActivityRemoved:   "was removed by {by}",
	agentapi.ActivityCut:       "was disconnected by {by}",
	agentapi.ActivityRestored:  "has it back as before, by {by}",
	agentapi.ActivityAccepted:  "accepted the invitation",
	agentapi.ActivityUntil:     "got another end by {by}",
	agentapi.ActivityEnded:     "ended",
	agentapi.ActivityLeft:      "left",
	agentapi.ActivityBrowser:   "signed in with a new browser: {what}",
	agentapi.ActivityPasskey:   "has a new way to sign in: {what}",

	agentapi.ActivityRecovering: "keeps the passkeys that the server's operator was told are lost",

	agentapi.ActivityKnocked:      "asked to be let in",
	agentapi.ActivityKnockRefused: "was not let in by {by}",
	agentapi.ActivityKnockMuted:   "was not let in by {by}, and cannot ask again",
	agentapi.ActivityTurnedAway:   "was turned away",

	agentapi.ActivityGroupAdded:     "the group {what} was made by {by}",
	agentapi.ActivityGroupRemoved:   "the group {what} was removed by {by}",
	agentapi.ActivityGroupJoined:    "joined {what}, by {by}",
	agentapi.ActivityGroupLeft:      "left {what}, by {by}",
	agentapi.ActivityGroupGiven:     "was given to {what} by {by}",
	agentapi.ActivityGroupWithdrawn: "was taken away from {what} by {by}",
	agentapi.ActivityGroupFilled:    "{what} is filled by {by}",
	agentapi.ActivityGroupEnded:     "ended for {what}",

	agentapi.ActivityApproved:       "was approved by {by}",
	agentapi.ActivityDenied:         "was denied by {by}",
	agentapi.ActivityPaused:         "was paused by {by}",
	agentapi.ActivityResumed:        "was resumed by {by}",
	agentapi.ActivityStopped:        "is not shared any more, by {by}",
	agentapi.ActivityRevoked:        "was revoked by {by}",
	agentapi.ActivityOptions:        "got other options by {by}",
	agentapi.ActivityRenamed:        "was called {what} before",
	agentapi.ActivityPortChanged:    "answers on another port",
	agentapi.ActivityProgramChanged: "is answered by another program",

	agentapi.ActivityClientIn:        "let {what} in",
	agentapi.ActivityClientOut:       "{what} was let go by {by}",
	agentapi.ActivityDomainAdded:     "an own domain was added: {what}",
	agentapi.ActivityDomainRemoved:   "an own domain was removed: {what}",
	agentapi.ActivityPasswordMade:    "an app password was made by {by}: {what}",
	agentapi.ActivityPasswordRevoked: "an app password was revoked by {by}: {what}",
	agentapi.ActivityDeviceMade:      "a device's certificate was made by {by}: {what}",
	agentapi.ActivityDeviceRevoked:   "a device's certificate was revoked by {by}: {what}",
	agentapi.ActivityPasswordRefused: "a wrong app password was refused",
	agentapi.ActivityDelivered:       "a sender delivered: {what}",
	agentapi.ActivitySenderAdded:     "a sender was named by {by}: {what}",
	agentapi.ActivitySenderChanged:   "a sender got another secret by {by}: {what}",
	agentapi.ActivitySenderRevoked:   "a sender was revoked by {by}: {what}",
	agentapi.ActivitySenderEnded:     "a sender has ended: {what}",
	agentapi.ActivityDeliveryRefused: "what no sender signed was refused",

	agentapi.ActivityDark:               "everything was closed by {by}",
	agentapi.ActivityLight:              "everything was opened again by {by}",
	agentapi.ActivityConnected:          "connected to {what} by {by}",
	agentapi.ActivityDisconnected:       "disconnected from {what} by {by}",
	agentapi.ActivityConnectFailed:      "connecting to {what} failed",
	agentapi.ActivitySettings:           "settings changed by {by}",
	agentapi.ActivityUserAllowed:        "{what}, another user, was allowed by {by}",
	agentapi.ActivityUserDenied:         "{what}, another user, was denied by {by}",
	agentapi.ActivityServerAway:         "{what} did not answer any more",
	agentapi.ActivityServerBack:         "{what} answered again",
	agentapi.ActivityCertificateTrouble: "no certificate could be had for {what}",
	agentapi.ActivityCertificateRenewed: "the certificate of {what} was renewed",
	agentapi.ActivityClockAhead:         "this computer's clock is ahead",
}

func activityCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "activity",
		SuggestFor: []string{"log", "logs", "history"},
		Short:      "Show who opened what and what was decided, newest first",
		Long: `Show who opened what and what was decided, newest first. The record is kept on
this computer only, for 90 days.`,
		Example: `  porchlight activity --limit 20
  porchlight activity --only decisions --app Notes
  porchlight activity clear`,
	}
	q := agentapi.ActivityQuery{}
	flags := cmd.Flags()
	flags.IntVar(&q.Limit, "limit", 100, "lines to show, at most")
	flags.StringVar(&q.Group, "only", "", "visits, decisions or trouble")
	flags.StringVar(&q.App, "app", "", "only of the app that had this label")
	flags.StringVar(&q.Email, "person", "", "only about the person with this address")
	flags.StringVar(&q.Search, "search", "", "only lines with these words")
	cmd.AddCommand(clearActivityCommand(c), undoActivityCommand(c))
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) ([]agentapi.Activity, error) {
		if q.Group == "" && q.App == "" && q.Email == "" && q.Search == "" {
			return client.Activity(ctx, q.Limit) // also of an engine that knows no pages
		}
		return findActivity(ctx, client, q)
	}, func(lines []agentapi.Activity, _ []string) error {
		none := "Nothing has happened yet."
		if q.Group+q.App+q.Email+q.Search != "" {
			none = "Nothing like that has happened."
		}
		return list(c.terminal, none, []string{"WHEN", "WHO", "APP", "WHAT"}, lines, func(l agentapi.Activity) []string {
			return []string{moment(l.At), whoIsMeant(l), l.App, whatHappened(l)}
		})
	})
}

// findActivity reads page after page until it has as many lines as are wanted.
func findActivity(ctx context.Context, client *agentapi.Client, q agentapi.ActivityQuery) ([]agentapi.Activity, error) {
	const most = 1000
	lines, wanted := []agentapi.Activity{}, q.Limit
	for len(lines) < wanted || len(lines) == 0 {
		q.Limit = min(wanted-len(lines), most)
		page, err := client.ActivityPage(ctx, q)
		if err != nil {
			return nil, err
		}
		lines = append(lines, page.Lines...)
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	return lines, nil
}

// whoIsMeant is whom a line is about, the owner being "you".
func whoIsMeant(l agentapi.Activity) string {
	if l.You {
		return "you"
	}
	return l.Email
}

func whatHappened(l agentapi.Activity) string {
	what := activityWords[l.Kind]
	if what == "" {
		what = l.Kind
		if l.By != "" {
			what += " " + l.By
		}
	}
	by := l.By
	if l.Owner {
		by = "you"
	}
	if by == "" {
		what = strings.NewReplacer(", by {by}", "", " with {by}", "", " by {by}", "").Replace(what)
	}
	if l.What == "" {
		what = strings.NewReplacer(": {what}", "", " of {what}", "", " for {what}", "").Replace(what)
	}
	what = strings.NewReplacer("{by}", by, "{what}", l.What).Replace(what)
	if !l.Until.IsZero() {
		what += ", until " + moment(l.Until)
	}
	if l.Count > 1 {
		what += fmt.Sprintf(", %d times", l.Count)
	}
	if l.Closed > 0 {
		what += fmt.Sprintf(" (connections closed: %d)", l.Closed)
	}
	return what
}

func clearActivityCommand(c cli) *cobra.Command {
	cmd := verb("clear", "Forget what happened")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Done, error) {
		return done(client.ClearActivity(ctx))
	}, says[agentapi.Done](c, "Forgotten."))
}

// undoActivityCommand takes back the newest thing that can be.
func undoActivityCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use: "undo", Short: "Take the last decision back that can be",
		Long: `Take the last decision back that can be taken back so that everything is exactly
as it was before it: an app that was paused, an app that was given or taken away,
an invitation that nobody accepted, having gone dark.`,
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, _ []string) (agentapi.Activity, error) {
		page, err := client.ActivityPage(ctx, agentapi.ActivityQuery{Limit: 100, Group: agentapi.GroupDecisions})
		if err != nil {
			return agentapi.Activity{}, err
		}
		for _, line := range page.Lines {
			if line.Undo {
				return line, client.UndoActivity(ctx, line.ID)
			}
		}
		return agentapi.Activity{}, agentapi.Errorf(agentapi.CodeConflict, "Nothing of late can be undone so that all is exactly as it was.")
	}, func(line agentapi.Activity, _ []string) error {
		c.line("Undone: %s", printable(inOneSentence(line)))
		return nil
	})
}

// inOneSentence is a line without its columns: about whom or else about which app it is, what
// happened, and the app where that was not said yet.
func inOneSentence(l agentapi.Activity) string {
	subject, app := whoIsMeant(l), ""
	if subject == "" {
		subject = l.App
	} else if l.App != "" {
		app = ": " + l.App
	}
	return strings.TrimSpace(subject + " " + whatHappened(l) + app)
}
