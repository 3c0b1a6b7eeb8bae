package main

import (
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
)

func computerCommand(term terminal) *cobra.Command {
	list := listCommand(term, "List the computers", (*admin.Client).Computers,
		"No computer is connected yet. On a computer, type: porchlight connect URL", []string{"NAME", "OWNER", "ADDRESS", "SINCE"},
		func(c control.OwnedComputer) []string {
			return []string{c.Name, c.Owner, c.URL, c.CreatedAt.Format(time.DateOnly)}
		})
	return group("computer", "Computers of the accounts", list, computerCertificatesCommand(term), computerShowCommand(term), computerDisconnectCommand(term), computerRemoveCommand(term))
}

func computerCertificatesCommand(term terminal) *cobra.Command {
	cmd := listCommand(term, "List the computers whose certificates cannot be renewed and end within 14 days", (*admin.Client).Certificates,
		"Every certificate is renewed in time, as far as the computers say.", []string{"NAME", "OWNER", "CERTIFICATE UNTIL", "HERE LAST"},
		func(c control.EndingCertificate) []string {
			return []string{c.Name, c.Owner, stamp(c.Ends), sinceOf(c.Seen)}
		})
	cmd.Use = "certificates"
	return cmd
}

func computerDisconnectCommand(term terminal) *cobra.Command {
	return doneCommand(term, "disconnect NAME", "End a computer's credential; its name and people are kept", "the NAME of a computer",
		(*admin.Client).DisconnectComputer, "The computer is disconnected. Its owner can connect it, or another one, under the same name.",
		`End a computer's device credential: for one that was lost or stolen. Its tunnel
is closed at once. The short name, the people and what they were given are kept
until the owner connects a computer under that name again.`)
}

func computerRemoveCommand(term terminal) *cobra.Command {
	return doneCommand(term, "remove NAME", "Take a computer away with its people", "the NAME of a computer",
		(*admin.Client).RemoveComputer, "The computer is removed. Its name is kept back for its former account for 90 days; then anybody can choose it.",
		`Take a computer away: its credential ends, its tunnel is closed, and with it go
the people who could reach it and the apps they let in. This cannot be undone.
Its short name is kept back for its former account for 90 days; after that anybody
can choose it.`)
}
