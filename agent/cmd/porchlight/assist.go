package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/internal/localca"
)

// assistance is what an assistant has to be told to use an app. It opens nothing: whoever
// uses the app signs in and allows it.
type assistance struct {
	URL                 string `json:"url"`
	AuthorizationServer string `json:"authorizationServer"` // its issuer (RFC 8414)
	// MCPServers is the block that most assistants take in their settings.
	MCPServers map[string]mcpServer `json:"mcpServers"`
	Command    string               `json:"command"` // for a terminal, but for the client's id

	local bool
}

type mcpServer struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

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
	path := cmd.Flags().String("path", "/mcp", "where the app answers assistants")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !strings.HasPrefix(*path, "/") || strings.ContainsAny(*path, " \"'\\?#") {
			return commandline.Usagef("--path takes a path as it stands in an address, such as /mcp")
		}
		return nil
	}
	return ownerCommand(c, cmd, func(ctx context.Context, client *agentapi.Client, args []string) (assistance, error) {
		state, err := client.State(ctx)
		if err != nil {
			return assistance{}, err
		}
		app, err := appIn(state, args[0])
		switch {
		case err != nil:
			return assistance{}, err
		case app.Status != agentapi.StatusLive:
			return assistance{}, agentapi.Errorf(agentapi.CodeConflict, "%s is %s, so it has no address yet. See: porchlight apps", app.Name, app.Status)
		}
		url := strings.TrimSuffix(app.URL, "/") + *path
		return assistance{
			URL: url, AuthorizationServer: state.Account.AuthURL, local: state.Account.Local,
			MCPServers: map[string]mcpServer{app.Name: {Type: "http", URL: url}},
			Command:    "claude mcp add --transport http --client-id ID " + app.Name + " " + url,
		}, nil
	}, func(a assistance, _ []string) error { return c.sayAssistance(a) })
}

// sayAssistance is for people. The operator names clients; in local mode that is the owner.
func (c cli) sayAssistance(a assistance) error {
	block, err := json.MarshalIndent(map[string]any{"mcpServers": a.MCPServers}, "", "  ")
	if err != nil {
		return err
	}
	c.line("The address for an assistant: %s", a.URL)
	c.line("It finds the sign-in there by itself, at %s, and asks you in your browser.\n", a.AuthorizationServer)
	c.line("Most assistants take this in their settings:\n\n%s\n", block)
	c.line("Claude Code takes:\n\n%s\n", a.Command)
	add := `porchlight-control client add --public --name "Claude Code" --redirect-uri http://localhost/callback`
	if a.local {
		data, err := c.dataDir()
		if err != nil {
			return err
		}
		c.line("The client's id you make yourself, once for each assistant:\n\n%s --data %s", add, argument(filepath.Join(data, "control")))
		c.line("\nIt has to trust this computer's certificates, as your browser does. One that is made with Node takes NODE_EXTRA_CA_CERTS=%s",
			argument(filepath.Join(data, "ca", localca.RootFile)))
		c.line("This computer is connected to no server yet: only an assistant that runs here can reach it, none elsewhere. See: porchlight connect --help")
		return nil
	}
	c.line("The client's id, and for some a secret, is given by whoever runs %s, by:\n\n%s", a.AuthorizationServer, add)
	return nil
}
