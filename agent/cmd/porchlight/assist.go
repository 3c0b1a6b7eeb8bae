package main

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
)

func assistCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assist NAME",
		Short: "Say what to tell an assistant so that it can use an app",
		Long: `Say what to tell an assistant, an editor or a coding agent so that it can use an
app, an MCP server or an API. Nothing is opened by it: the assistant sends you to
your browser, where you sign in and allow it, and 'porchlight grants' lists it then
and ends it.`,
		Example: `  porchlight assist notes
  porchlight assist notes --path /api/mcp --json`,
		Args: commandline.Exactly("the NAME of the app"),
	}
	path := cmd.Flags().String("path", "", "where the app answers assistants; by default as the option mcp says, else "+agentapi.DefaultAssistPath)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *path != "" && !agentapi.IsAssistPath(*path) {
			return commandline.Usagef("--path takes a path as it stands in an address, such as /mcp")
		}
		return nil
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (agentapi.Assistance, error) {
		return client.Assist(ctx, args[0], *path)
	}, func(a agentapi.Assistance, _ []string) error { return c.sayAssistance(a) })
}

// sayAssistance is for people. The operator names clients; in local mode that is the owner.
func (c cli) sayAssistance(a agentapi.Assistance) error {
	block, err := json.MarshalIndent(map[string]any{"mcpServers": a.MCPServers}, "", "  ")
	if err != nil {
		return err
	}
	c.line("The address for an assistant: %s", a.URL)
	c.line("It finds the sign-in there by itself, at %s, and asks you in your browser.\n", a.AuthorizationServer)
	c.line("Most assistants take this in their settings:\n\n%s\n", block)
	c.line("Claude Code takes:\n\n%s\n", a.Command)
	add := `porchlight-control client add --public --name "Claude Code" --redirect-uri http://localhost/callback`
	if a.Local {
		data, err := c.dataDir()
		if err != nil {
			return err
		}
		c.line("The client's id you make yourself, once for each assistant:\n\n%s --data %s", add, argument(filepath.Join(data, "control")))
		c.line("\nIt has to trust this computer's certificates, as your browser does. One that is made with Node takes NODE_EXTRA_CA_CERTS=%s",
			argument(a.RootCA))
		c.line("This computer is connected to no server yet: only an assistant that runs here can reach it, none elsewhere. See: porchlight connect --help")
		return nil
	}
	c.line("The client's id, and for some a secret, is given by whoever runs %s, by:\n\n%s", a.AuthorizationServer, add)
	return nil
}
