package main

import (
	"context"
	"os/user"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
)

func usersCommand(c cli) *cobra.Command {
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
	}
	cmd.AddCommand(
		answerUserCommand(c, "allow USER", "Let a user's programs register", (*agentapi.Client).AllowUser,
			"Programs of %s may register. They see and change who may open your apps."),
		answerUserCommand(c, "deny USER", "Keep a user's programs out, and ask no more", (*agentapi.Client).DenyUser,
			"Programs of %s may not register, and you are not asked again."),
		forgetUserCommand(c))
	return listCommand(c, cmd, "List those who asked or were answered", (*agentapi.Client).Users, c.printUsers)
}

func answerUserCommand(c cli, use, short string,
	give func(*agentapi.Client, context.Context, string) (agentapi.LocalUser, error), said string) *cobra.Command {
	cmd := verb(use, short, "the USER")
	return ownerCommand(c, cmd, called(userID, give), func(u agentapi.LocalUser, _ []string) error {
		c.line(said, printable(u.Name))
		return nil
	})
}

func forgetUserCommand(c cli) *cobra.Command {
	cmd := verb("forget USER", "Take an answer back: programs of the user are out until you are asked again", "the USER")
	return ownerCommand(c, cmd, called(userID, doing((*agentapi.Client).ForgetUser)), says[agentapi.Done](c, "Forgotten. You are asked when a program of %s tries again."))
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

func (t *terminal) printUsers(users []agentapi.LocalUser) error {
	words := map[string]string{agentapi.UserAsks: "asks", agentapi.UserAllowed: "allowed", agentapi.UserDenied: "denied"}
	return list(t, "No other user of this computer has asked to register a program.", []string{"USER", "ID", "STANDING", "SINCE"}, users, func(u agentapi.LocalUser) []string {
		return []string{u.Name, u.ID, words[u.Standing], moment(u.At)}
	})
}
