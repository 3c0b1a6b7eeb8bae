package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/internal/words"
)

func grantsCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List the remote clients that people connected, and disconnect them",
		Long: `List the remote clients that people connected to this computer: apps and programs
elsewhere that open, in their name, what they may open, or some of it.`,
		Example: `  porchlight grants
  porchlight grants revoke "Pocket Notes"`,
	}
	cmd.AddCommand(revokeGrantCommand(c))
	return listCommand(c, cmd, "List the connected clients, newest first", (*agentapi.Client).Grants, c.printGrants)
}

func revokeGrantCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke CLIENT",
		Short: "Disconnect a remote client, at once",
		Long: `Disconnect a remote client: by the ID of the connection, at once and without a
network, or, where that means one connection alone, by the client's name or the
e-mail address of who connected it. 'porchlight grants' shows all three.`,
		Example: `  porchlight grants revoke "Pocket Notes"
  porchlight grants revoke bob@example.com
  porchlight grants revoke ID`,
		Args: commandline.Exactly("the CLIENT: its name, who connected it, or the ID of the connection"),
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.Closed, error) {
		return revokeGrant(ctx, client, args[0])
	}, func(closed agentapi.Closed, args []string) error {
		c.revoked("Disconnected", "a connection", args[0], closed)
		return nil
	})
}

// revokeGrant ends the only grant that a word names. An id is tried as one first: the list
// may have to wait for the control plane, and does not hold the ids of a row's other logins.
func revokeGrant(ctx context.Context, client *agentapi.Client, word string) (agentapi.Closed, error) {
	var closed agentapi.Closed
	if looksLikeID(word) {
		var err error
		closed, err = client.RevokeGrant(ctx, word)
		if err == nil && !closed.Uncertain || err != nil && agentapi.CodeOf(err) != agentapi.CodeNotFound {
			return closed, err
		}
	}
	id := ""
	grants, err := client.Grants(ctx)
	if err == nil {
		id, err = grantCalled(grants, word)
	}
	switch {
	case err == nil:
		return client.RevokeGrant(ctx, id)
	case closed.Uncertain && agentapi.CodeOf(err) != agentapi.CodeConflict:
		return closed, nil // it is no name either, as far as anybody knows
	}
	return agentapi.Closed{}, err
}

// looksLikeID is whether a control plane may have made a word as an id.
func looksLikeID(word string) bool {
	return len(word) >= 26 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// grantCalled is the id of the only grant that a word names: by its id, or by the client's
// name or the e-mail address of who allowed it, in whatever capitals. A word that may mean
// several is refused, so that nobody's client is disconnected for another one.
func grantCalled(grants []agentapi.Grant, word string) (id string, err error) {
	var meant []string
	for _, g := range grants {
		if g.ID == word {
			return word, nil
		}
		if strings.EqualFold(g.Called(), word) || strings.EqualFold(g.Email, word) {
			id = g.ID
			meant = append(meant, fmt.Sprintf("%q for %s (%s)", g.Called(), printable(g.Email), g.ID))
		}
	}
	const most = 5
	more := ""
	switch {
	case len(meant) == 0:
		return "", agentapi.Errorf(agentapi.CodeNotFound, "%q has no connection here. See: porchlight grants", word)
	case len(meant) == 1:
		return id, nil
	case len(meant) > most:
		more = fmt.Sprintf(", or one of %d more", len(meant)-most)
		meant = meant[:most]
	}
	return "", agentapi.Errorf(agentapi.CodeConflict, "%q may mean %s%s. Name it by its ID; see: porchlight grants", word, strings.Join(meant, ", or "), more)
}

func (t *terminal) printGrants(grants []agentapi.Grant) error {
	return list(t, "No remote client is connected.", []string{"CLIENT", "FOR", "OPENS", "SINCE", "CALLS TODAY", "LAST USED", "ID"}, grants, func(g agentapi.Grant) []string {
		opens := "all they may open"
		if g.Apps != nil {
			opens = words.English.And(g.Apps...)
		}
		last := cmp.Or(g.LastCall, g.LastUsedAt) // of an earlier version's time there is no call
		return []string{g.Called(), g.Email, opens, moment(g.CreatedAt), strconv.Itoa(g.CallsToday), moment(last), g.ID}
	})
}
