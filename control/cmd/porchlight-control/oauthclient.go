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
		oauthClientAddCommand(term), oauthClientListCommand(term), oauthClientRotateCommand(term), oauthClientRemoveCommand(term),
		oauthHostAllowCommand(term), oauthHostDisallowCommand(term))
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

// listedClients are the clients, and then the hosts at which others may describe
// themselves.
func listedClients(c *admin.Client, ctx context.Context) ([]any, error) {
	clients, err := c.OAuthClients(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := c.OAuthHosts(ctx)
	list := []any{}
	for _, one := range clients {
		list = append(list, one)
	}
	for _, host := range hosts {
		list = append(list, host)
	}
	return list, err
}

func oauthClientListCommand(term terminal) *cobra.Command {
	return listCommand(term, "List the clients, and the hosts that are allowed", listedClients,
		"No OAuth client is registered.", []string{"ID", "NAME", "SECRET SINCE", "REDIRECT URIS"},
		func(listed any) []string {
			if host, ok := listed.(control.AllowedHost); ok {
				return []string{"https://" + host.Host + "/…", "any, allowed " + host.AllowedAt.Format(time.DateOnly), "", ""}
			}
			c := listed.(control.Client)
			since := c.CreatedAt
			if !c.RotatedAt.IsZero() {
				since = c.RotatedAt
			}
			secret := since.Format(time.DateOnly)
			switch {
			case c.Public:
				secret = "none: public"
			case c.Host != "":
				secret = "none: keys"
			}
			return []string{c.ID, c.Name, secret, strings.Join(c.RedirectURIs, " ")}
		})
}

func oauthHostAllowCommand(term terminal) *cobra.Command {
	cmd := clientCommand("allow HOST...", "Let clients describe themselves at a host", needsHosts,
		func(ctx context.Context, c *admin.Client, hosts []string) error {
			if err := c.AllowOAuthHosts(ctx, hosts); err != nil {
				return err
			}
			_, err := fmt.Fprintln(term.err, "Clients there need not be registered any more. People are still asked for each.")
			return err
		})
	cmd.Long = `Let clients describe themselves at a host, by their whole name.

Such a client needs not be registered: its id is an https address there, where it
says its name and its redirect URIs (OAuth Client ID Metadata Document). People are
asked for consent as for every other client, and see the host.`
	cmd.Example = "  porchlight-control client allow claude.ai vscode.dev --data /var/lib/porchlight"
	return cmd
}

func needsHosts(_ *cobra.Command, hosts []string) error {
	if len(hosts) == 0 {
		return commandline.Usagef("client allow needs a HOST, by its whole name")
	}
	return nil
}

func oauthHostDisallowCommand(term terminal) *cobra.Command {
	return doneCommand(term, "disallow HOST", "End a host, its clients and everything people allowed them", "the HOST, by its whole name",
		(*admin.Client).DisallowOAuthHost, "The host is not allowed any more. Tokens of clients there stop working within seconds.",
		"")
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
