package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

// listens is one line of `listening --json`.
type listens struct {
	Port      int    `json:"port"`
	Program   string `json:"program"`
	User      string `json:"user"`
	Published bool   `json:"published"`
	// Network is true where other computers can open the port as it is.
	Network bool `json:"network"`
	// NotOffered is why the window does not offer to share it.
	NotOffered string `json:"notOffered,omitempty"`
}

func listeningCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "listening",
		Short: "List the programs that listen on this computer now, and which are published",
		Long: `List the programs that take connections on this computer now, and which of them
are published. It is read from the system's tables: no program is sent anything.`,
		Example: `  porchlight listening
  porchlight share 8000 --keep      puts one of them at an address`,
		Args: commandline.Exactly(),
	}
	return ownerCommand(c, cmd, allListening, func(all []listens, _ []string) error { return c.printListening(all) })
}

func allListening(ctx context.Context, client *agentapi.Client, _ []string) ([]listens, error) {
	all, err := client.Listening(ctx)
	out := make([]listens, 0, len(all))
	for _, one := range all {
		out = append(out, listens{one.Port, one.Program, one.User, one.Published, one.Network, one.NotOffered})
	}
	return out, err
}

// printListening leaves out what is not offered: that is in --json.
func (t *terminal) printListening(all []listens) error {
	rows, left := [][]string{}, 0
	for _, one := range all {
		if one.NotOffered != "" && !one.Published {
			left++
			continue
		}
		published := "no"
		if one.Published {
			published = "yes"
		}
		open := "no"
		if one.Network {
			open = "yes"
		}
		rows = append(rows, []string{strconv.Itoa(one.Port), one.Program, one.User, published, open})
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
