package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func sendersCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "senders",
		SuggestFor: []string{"webhooks", "hooks"},
		Short:      "Let programs of others in that sign what they send (webhooks)",
		Long: `Let programs of others in that know no sign-in and sign what they send: webhooks.
You name one for an app, with the path it posts to and the secret that both know.
What it posts there reaches the app once its signature was checked here; everything
else at that path needs a sign-in, as before.`,
		Example: `  porchlight senders add hooks --name GitHub --path /push --kind github < secret
  porchlight senders
  porchlight senders revoke ID`,
	}
	cmd.AddCommand(addSenderCommand(c), rotateSenderCommand(c), revokeSenderCommand(c))
	return listCommand(c, cmd, "List who was named a sender, by app", (*agentapi.Client).Senders, c.printSenders)
}

func addSenderCommand(c cli) *cobra.Command {
	kinds := strings.Join(agentapi.SenderKinds(), ", ")
	cmd := &cobra.Command{
		Use:   "add APP --name NAME --path PATH --kind KIND",
		Short: "Name a sender for one app; its secret comes on standard input",
		Long: `Name a sender for one app. PATH is exactly what it posts to, with a query where it
has one. The secret is read from standard input, and not kept by this command.

The kinds that sign the time are checked by it; of the others, github and
hmac-sha256, what was delivered is known for 7 days and refused again.`,
		Example: `  porchlight senders add hooks --name GitHub --path /push --kind github < secret
  porchlight senders add hooks --name Shop --path "/paid?from=shop" --kind hmac-sha256 --header X-Signature < secret`,
		Args: commandline.Exactly("the APP, by its name, label or address"),
	}
	req := agentapi.SenderRequest{}
	f := cmd.Flags()
	f.StringVar(&req.Name, "name", "", "what to call it")
	f.StringVar(&req.Path, "path", "", "what it posts to, like /hooks/push")
	f.StringVar(&req.Kind, "kind", "", "how it signs: "+kinds)
	f.StringVar(&req.Header, "header", "", "the header of its signature, for "+agentapi.SenderHMAC)
	until := untilFlag(cmd, "it ends")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, flag := range []string{"name", "path", "kind"} {
			if cmd.Flags().Lookup(flag).Value.String() == "" {
				return commandline.Usagef("%s needs --%s, %s", cmd.CommandPath(), flag, cmd.Flags().Lookup(flag).Usage)
			}
		}
		return checkUntil(cmd)
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (made agentapi.MadeSender, err error) {
		apps, _, err := appsCalled(ctx, client, args[0])
		if err != nil {
			return made, err
		}
		if req.Secret, err = c.secret(); err != nil {
			return made, err
		}
		req.App, req.Until = apps[0].Name, *until
		return client.AddSender(ctx, req)
	}, func(made agentapi.MadeSender, _ []string) error {
		c.line("%s", made.URL)
		c.remark("Give the sender that address, and the secret. What it signs comes in, until: porchlight senders revoke %s", made.ID)
		return nil
	})
}

func rotateSenderCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a sender another secret, from standard input, beside the one it has",
		Long: `Give a sender another secret, from standard input. The one it has holds beside it,
until the next rotate, or rotate --drop-old once the sender signs with the new one.`,
		Example: `  porchlight senders rotate ID < secret
  porchlight senders rotate ID --drop-old`,
		Args: commandline.Exactly("the ID of the sender"),
	}
	dropOld := cmd.Flags().Bool("drop-old", false, "end the older of two secrets, and read none")
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.Sender, error) {
		req := agentapi.SenderSecret{Alone: *dropOld}
		if !*dropOld {
			var err error
			if req.Secret, err = c.secret(); err != nil {
				return agentapi.Sender{}, err
			}
		}
		return client.ChangeSenderSecret(ctx, args[0], req)
	}, func(s agentapi.Sender, _ []string) error {
		if s.Secrets > 1 {
			c.line("%s may sign with either of two secrets, until: porchlight senders rotate %s --drop-old", printable(s.Name), s.ID)
		} else {
			c.line("%s has one secret, the newest.", printable(s.Name))
		}
		return nil
	})
}

func revokeSenderCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Take nothing from a sender any more, at once",
		Example: "  porchlight senders revoke ID",
		Args:    commandline.Exactly("the ID of the sender"),
	}
	return ownerCommand(c, cmd, of((*agentapi.Client).RevokeSender), func(closed agentapi.Closed, args []string) error {
		c.revoked("Revoked", "a sender", args[0], closed)
		return nil
	})
}

// secret reads one line; at a terminal it is not shown.
func (t *terminal) secret() (string, error) {
	const most = 4 << 10
	var raw []byte
	var err error
	if in := int(os.Stdin.Fd()); t.in == nil && term.IsTerminal(in) {
		fmt.Fprint(t.err, "The sender's secret: ")
		raw, err = term.ReadPassword(in)
		t.remark("")
	} else {
		raw, err = io.ReadAll(io.LimitReader(cmp.Or[io.Reader](t.in, os.Stdin), most+1))
	}
	raw = bytes.TrimRight(raw, "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret: %w", err)
	case len(raw) == 0:
		return "", commandline.Usagef("the secret is read from standard input, and there was none")
	case len(raw) > most, bytes.ContainsAny(raw, "\r\n"):
		return "", commandline.Usagef("the secret on standard input is more than one short line")
	}
	return string(raw), nil
}

func (t *terminal) printSenders(all []agentapi.Sender) error {
	const none = "No senders yet. Try: porchlight senders add APP --name GitHub --path /push --kind github < secret"
	return list(t, none, []string{"NAME", "APP", "KIND", "POSTS TO", "UNTIL", "SINCE", "ID"}, all, func(s agentapi.Sender) []string {
		kind, until := s.Kind, ""
		if s.Header != "" {
			kind += " " + s.Header
		}
		if s.Secrets > 1 {
			kind += ", two secrets"
		}
		if !s.Until.IsZero() {
			until = moment(s.Until)
		}
		return []string{s.Name, s.AppName, kind, s.Path, until, moment(s.CreatedAt), s.ID}
	})
}
