package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"porchlight/control"
	"porchlight/control/admin"
	"porchlight/internal/commandline"
)

// oauthClientCommand is "client": the apps that may ask people for access.
func oauthClientCommand(term terminal) *cobra.Command {
	return group("client", "OAuth clients: apps elsewhere that people may let in",
		oauthClientAddCommand(term), oauthClientListCommand(term), oauthClientRotateCommand(term), oauthClientRemoveCommand(term))
}

func oauthClientAddCommand(term terminal) *cobra.Command {
	var asJSON bool
	var ask admin.AddOAuthClient
	cmd := clientCommand("add --name NAME --redirect-uri URI...", "Register a client and print its id and secret", commandline.Exactly(),
		func(ctx context.Context, c *admin.Client, _ []string) error {
			secret, err := c.AddOAuthClient(ctx, ask)
			if err != nil {
				return err
			}
			return term.oauthSecret(secret, asJSON)
		})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case ask.Name == "":
			return commandline.Usagef("client add needs --name: people read it on the page that asks for their consent")
		case len(ask.RedirectURIs) == 0:
			return commandline.Usagef("client add needs at least one --redirect-uri")
		}
		return nil
	}
	cmd.Long = `Register a client and print its id and its secret.

The secret is shown this once and stored as a hash only: whoever loses it needs
a new one (client rotate). Redirect URIs are compared byte for byte; they are
https, http to 127.0.0.1 or localhost, or of a scheme like com.example.app. They
have no fragment, no * and no .. between slashes.

A program that many people run, or a page's script, cannot keep a secret: with
--public it has none. Its redirect URIs to 127.0.0.1, [::1] or localhost count at
every port, and may be of a scheme like cursor.`
	cmd.Example = `  porchlight-control client add --name "Pocket Notes" \
      --redirect-uri https://notes.example/callback --data /var/lib/porchlight
  porchlight-control client add --public --name "Pocket Editor" \
      --redirect-uri http://127.0.0.1/callback --data /var/lib/porchlight`
	cmd.Flags().BoolVar(&ask.Public, "public", false, "it cannot keep a secret, and gets none")
	cmd.Flags().StringVar(&ask.Name, "name", "", "what people read on the page that asks for their consent")
	cmd.Flags().StringArrayVar(&ask.RedirectURIs, "redirect-uri", nil, "where the browser goes with the answer; may be given several times")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// oauthSecret prints a secret that is shown this once, or that there is none.
func (t terminal) oauthSecret(s admin.OAuthSecret, asJSON bool) error {
	if asJSON {
		return t.json(s)
	}
	if s.ClientSecret == "" {
		_, err := fmt.Fprintf(t.out, "Client id: %s\nIt is public: it has no secret, and sends its id alone.\n", s.ClientID)
		return err
	}
	_, err := fmt.Fprintf(t.out, "Client id:     %s\nClient secret: %s\nThe secret is shown this once; keep it where the client runs.\n", s.ClientID, s.ClientSecret)
	return err
}

func oauthClientListCommand(term terminal) *cobra.Command {
	return listCommand(term, "List the clients", (*admin.Client).OAuthClients,
		"No OAuth client is registered.", []string{"ID", "NAME", "SECRET SINCE", "REDIRECT URIS"},
		func(c control.Client) []string {
			since := c.CreatedAt
			if !c.RotatedAt.IsZero() {
				since = c.RotatedAt
			}
			secret := since.Format(time.DateOnly)
			if c.Public {
				secret = "none: public"
			}
			return []string{c.ID, c.Name, secret, strings.Join(c.RedirectURIs, " ")}
		})
}

func oauthClientRotateCommand(term terminal) *cobra.Command {
	var asJSON bool
	cmd := clientCommand("rotate ID", "Replace a client's secret; the old one stops working at once", commandline.Exactly("the ID of a client"),
		func(ctx context.Context, c *admin.Client, args []string) error {
			secret, err := c.RotateOAuthClient(ctx, args[0])
			if err != nil {
				return err
			}
			return term.oauthSecret(secret, asJSON)
		})
	cmd.Long = `Replace a client's secret and print the new one, this once.

The old secret stops working at once. What people allowed the client stays
allowed: with the new secret it goes on refreshing its tokens.`
	jsonFlag(cmd, &asJSON)
	return cmd
}

func oauthClientRemoveCommand(term terminal) *cobra.Command {
	return doneCommand(term, "remove ID", "End a client and everything people allowed it", "the ID of a client",
		(*admin.Client).RemoveOAuthClient, "The client is removed. Its tokens stop working within seconds.",
		"")
}
