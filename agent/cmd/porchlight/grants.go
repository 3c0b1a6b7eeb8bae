package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func grantsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List the remote clients that people connected, and disconnect them",
		Long: `List the remote clients that people connected to this computer: apps and programs
elsewhere that open, in their name, what they may open.`,
		Example: `  porchlight grants
  porchlight grants revoke ID`,
	}
	cmd.AddCommand(revokeGrantCommand(c))
	return listCommand(c, cmd, "List the connected clients, newest first", (*agentapi.Client).Grants, c.printGrants)
}

func revokeGrantCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Disconnect a remote client, at once",
		Example: "  porchlight grants revoke ID",
		Args:    commandline.Exactly("the ID of the connection"),
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.Closed, error) {
		id, err := grantID(ctx, client, args[0])
		if err != nil {
			return agentapi.Closed{}, err
		}
		return client.RevokeGrant(ctx, id)
	}, func(closed agentapi.Closed, _ []string) error {
		c.line("Disconnected%s", closedWords(closed.Closed, closed.Milliseconds))
		return nil
	})
}

// grantID is what a connection was named by, or the id of the only one of an
// e-mail address.
func grantID(ctx context.Context, client *agentapi.Client, named string) (string, error) {
	if !strings.Contains(named, "@") {
		return named, nil
	}
	grants, err := client.Grants(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, g := range grants {
		if strings.EqualFold(g.Email, named) {
			ids = append(ids, g.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", agentapi.Errorf(agentapi.CodeNotFound, "%s has connected no client. See: porchlight grants", printable(named))
	case 1:
		return ids[0], nil
	}
	return "", agentapi.Errorf(agentapi.CodeConflict, "%s has connected %d clients. Name one by its ID; see: porchlight grants", printable(named), len(ids))
}

func (t *terminal) printGrants(grants []agentapi.Grant) error {
	if len(grants) == 0 {
		t.line("No remote client is connected.")
		return nil
	}
	rows := make([][]string, len(grants))
	for i, g := range grants {
		rows[i] = []string{g.ClientName, g.Email, moment(g.CreatedAt), moment(g.LastUsedAt), g.ID}
	}
	return t.table([]string{"CLIENT", "FOR", "SINCE", "LAST USED", "ID"}, rows)
}
