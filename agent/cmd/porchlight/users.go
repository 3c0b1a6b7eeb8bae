package main

import (
	"context"
	"os/user"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func usersCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	list := func(cmd *cobra.Command, _ []string) error {
		client, err := where.owner(cmd.Context())
		if err != nil {
			return err
		}
		users, err := client.Users(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return term.json(users)
		}
		return printUsers(term, users)
	}
	cmd := &cobra.Command{
		Use:   "users",
		Short: "Say which other users of this computer may register programs, and change it",
		Long: `Say which other users of this computer may register programs, and change it.

Programs of any user may ask you for an address. Those of a user you allow may
also register: they see who may open your apps, and invite and remove people,
which you are told of. A USER is a login name or the system's own id.`,
		Example: `  porchlight users
  porchlight users allow www-data
  porchlight users forget www-data      takes it back; the next attempt asks again`,
		Args: commandline.NoCommand,
		RunE: list,
	}
	listing := &cobra.Command{Use: "list", Short: "List those who asked or were answered", Args: commandline.Exactly(), RunE: list}
	jsonFlag(cmd, &asJSON)
	jsonFlag(listing, &asJSON)
	cmd.AddCommand(listing,
		answerUserCommand(where, term, "allow USER", "Let a user's programs register", (*agentapi.Client).AllowUser,
			"Programs of %s may register. They see and change who may open your apps."),
		answerUserCommand(where, term, "deny USER", "Keep a user's programs out, and ask no more", (*agentapi.Client).DenyUser,
			"Programs of %s may not register, and you are not asked again."),
		forgetUserCommand(where, term))
	return cmd
}

func answerUserCommand(where *location, term *terminal, use, short string,
	give func(*agentapi.Client, context.Context, string) (agentapi.LocalUser, error), done string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  commandline.Exactly("the USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			id, err := userID(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			u, err := give(client, cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return term.json(u)
			}
			term.line(done, printable(u.Name))
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func forgetUserCommand(where *location, term *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "forget USER",
		Short: "Take an answer back: programs of the user are out until you are asked again",
		Args:  commandline.Exactly("the USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := where.owner(cmd.Context())
			if err != nil {
				return err
			}
			id, err := userID(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if err := client.ForgetUser(cmd.Context(), id); err != nil {
				return err
			}
			if asJSON {
				return term.json(agentapi.Done{OK: true})
			}
			term.line("Forgotten. You are asked when a program of %s tries again.", printable(args[0]))
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// userID is the system's id of the user that named names: one who asked or was
// answered, else any of this computer.
func userID(ctx context.Context, client *agentapi.Client, named string) (string, error) {
	users, err := client.Users(ctx)
	if err != nil {
		return "", err
	}
	for _, u := range users {
		if u.Name == named || u.ID == named {
			return u.ID, nil
		}
	}
	if found, err := user.Lookup(named); err == nil {
		return found.Uid, nil
	}
	return named, nil // an id that has not asked; the agent knows whether it is one
}

func printUsers(term *terminal, users []agentapi.LocalUser) error {
	if len(users) == 0 {
		term.line("No other user of this computer has asked to register a program.")
		return nil
	}
	words := map[string]string{agentapi.UserAsks: "asks", agentapi.UserAllowed: "allowed", agentapi.UserDenied: "denied"}
	rows := make([][]string, len(users))
	for i, u := range users {
		rows[i] = []string{u.Name, u.ID, words[u.Standing], moment(u.At)}
	}
	return term.table([]string{"USER", "ID", "STANDING", "SINCE"}, rows)
}
