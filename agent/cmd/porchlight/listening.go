package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
)

func listeningCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "listening",
		Short: "List the programs that listen on this computer now, and which are published",
		Long: `List the programs that take connections on this computer now, and which of them
are published. It is read from the system's tables: no program is sent anything.`,
		Example: `  porchlight listening
  porchlight share 8000 --keep      puts one of them at an address`,
	}
	return ownerCommand(c, cmd, all((*agentapi.Client).Listening), func(found []agentapi.Listening, _ []string) error { return c.printListening(found) })
}

// printListening leaves out what is not offered: that is in --json.
func (t *terminal) printListening(all []agentapi.Listening) error {
	rows, left := [][]string{}, 0
	for _, one := range all {
		if one.NotOffered != "" && !one.Published {
			left++
			continue
		}
		rows = append(rows, []string{strconv.Itoa(one.Port), one.Program, one.User, yesNo(one.Published), yesNo(one.Network)})
	}
	if left > 0 {
		t.remark("%d more are no apps to open in a browser, as far as their port or program tells; --json lists them.", left)
	}
	if len(rows) == 0 {
		t.line("No program listens that could be shared.")
		return nil
	}
	return t.table([]string{"PORT", "PROGRAM", "USER", "PUBLISHED", "OPEN TO YOUR NETWORK"}, rows)
}
