package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// Shares that end, as they are typed and as they are shown.

const untilName = "until"

// untilForms are the ends that people type.
const untilForms = "a time like 18:00 or 2030-01-31T18:00, the end of a day like 2030-01-31 or today, a time from now like 2h, 7d or 1w, or never"

// untilFlag lets a command be told when something ends.
func untilFlag(cmd *cobra.Command, what string) *string {
	return cmd.Flags().String(untilName, "", "when "+what+", at a `TIME`: "+untilForms)
}

// checkUntil refuses what is no end before anything is asked of the agent.
func checkUntil(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup(untilName)
	if flag == nil || !flag.Changed {
		return nil
	}
	if _, err := agentapi.CheckedUntil(flag.Value.String(), time.Now()); err != nil || flag.Value.String() == "" {
		return commandline.Usagef("%s: --until is %s", cmd.CommandPath(), untilForms)
	}
	return nil
}

// endWords says when an app ends for somebody; empty where it does not.
func endWords(p agentapi.Person, label string) string { return endOfLabel(p.Until, label) }

// endOfLabel says when one of ends by label is; empty for none.
func endOfLabel(ends map[string]time.Time, label string) string {
	for of, at := range ends {
		if strings.EqualFold(of, label) {
			return " until " + agentapi.UntilWords(at, time.Now())
		}
	}
	return ""
}

// askedUntil says which end was asked for; empty for none.
func askedUntil(text string) string {
	now := time.Now()
	checked, err := agentapi.CheckedUntil(text, now)
	if err != nil {
		return ""
	}
	at, err := time.Parse(time.RFC3339, checked)
	if err != nil {
		return ""
	}
	return " until " + agentapi.UntilWords(at, now)
}

// approvedUntil says when the approval of an app ends; empty where it does not.
func approvedUntil(a agentapi.OwnerApp) string {
	if a.Until == nil {
		return ""
	}
	return " until " + agentapi.UntilWords(*a.Until, time.Now())
}

// sayUntil says it in a sentence.
func sayUntil(term *terminal, a agentapi.OwnerApp) {
	if ends := approvedUntil(a); ends != "" {
		term.line("%s is approved%s, and revoked then.", a.Name, ends)
	}
}

// mayOpen lists what somebody may open, with its ends, and what has ended.
func mayOpen(p agentapi.Person) string { return labelsWithEnds(p.Apps, p.Until, p.Ended) }

// labelsWithEnds lists apps with their ends, and what has ended.
func labelsWithEnds(apps []string, until, ended map[string]time.Time) string {
	var all []string
	for _, label := range apps {
		all = append(all, label+endOfLabel(until, label))
	}
	for _, label := range slices.Sorted(maps.Keys(ended)) {
		all = append(all, label+" (ended "+agentapi.UntilWords(ended[label], time.Now())+")")
	}
	return strings.Join(all, ", ")
}
