package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/user"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"porchlight/agent"
	"porchlight/agent/agentapi"
	"porchlight/agent/listening"
	"porchlight/agent/procinfo"
	"porchlight/internal/commandline"
)

// maxLine bounds one message of an assistant, in bytes. Nothing it may ask for comes near.
const maxLine = 4 << 20

func mcpCommand(c cli) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Let a coding agent ask for an address, as an MCP server on standard input and output",
		Long: `Let a coding agent ask for an address, as an MCP server on standard input and
output. An assistant starts it by itself; the example is what to add to its
configuration.

It can list the ports that your programs listen on, ask for an address for one of
them, see what is published, and take off what it published itself. It has no
owner secret: it approves nothing, invites nobody and changes no options. Each new
address waits for you, in the menu bar or for: porchlight approve NAME

It ends when the assistant does. What it published stays on, because you approved
the app, perhaps for others too, and not the conversation that asked for it.`,
		Example: `  {
    "mcpServers": {
      "porchlight": {"command": "porchlight", "args": ["mcp"]}
    }
  }`,
		Args: commandline.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			me, err := user.Current()
			if err != nil {
				return fmt.Errorf("the system does not say which user this is: %w", err)
			}
			err = newAssistant(c, me.Uid).server().Run(cmd.Context(), &mcp.StdioTransport{MaxLineLength: maxLine})
			if cmd.Context().Err() != nil {
				return nil // Ctrl-C is how it ends without an assistant
			}
			return err
		},
	}
}

func newAssistant(c cli, me string) *assistant {
	return &assistant{
		cli: c,
		// What a port is meant for is the owner's to see, and is not asked for.
		listens: listening.New(listening.Config{
			App:     func(int) (agentapi.AppSummary, bool) { return agentapi.AppSummary{}, false },
			Called:  func(_ netip.AddrPort, p procinfo.Process, _ uint64) string { return p.Program },
			Suggest: func(...string) (name, label string) { return "", "" },
			Me:      me,
			Titles:  func() bool { return false },
		}),
		waiting: make(chan struct{}, maxWaiting),
		asked:   map[string]agentapi.PublishRequest{},
	}
}

// server has the tools, each with what a model has to know to use it.
func (a *assistant) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "porchlight", Title: "Porchlight", Version: agent.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{},
		Instructions: "Porchlight puts an app that listens on a local port of this computer at an https address. Start the app, find its port with ports, and ask for an address with publish. " +
			"The owner of the computer approves each new address; tell them what they are asked for. Nobody but the owner can open it until the owner invites somebody.",
	})
	readOnly, additive := &mcp.ToolAnnotations{ReadOnlyHint: true}, false
	mcp.AddTool(s, &mcp.Tool{
		Name: "ports", Annotations: readOnly,
		Description: "List the local ports that programs of this user listen on now, with the program, as far as they could be a web app. Databases, mail, remote login and the like are left out. Nothing is sent to any of them.",
	}, answering(a.ports))
	mcp.AddTool(s, &mcp.Tool{
		Name: "publish", Annotations: &mcp.ToolAnnotations{DestructiveHint: &additive, IdempotentHint: true},
		Description: "Ask for an https address for an app that listens on a local port. The first time the answer is status pending: the owner has to approve it, which no tool can do, so tell the owner. " +
			"With wait the call ends once the owner has decided; cancelling it withdraws nothing. A name that something else has is refused: choose another one.",
	}, answering(a.publish))
	mcp.AddTool(s, &mcp.Tool{
		Name: "status", Annotations: readOnly,
		Description: "Tell what is published on this computer, with its URL, and how it stands with what was asked for in this run; with a name, of that one alone.",
	}, answering(a.status))
	mcp.AddTool(s, &mcp.Tool{
		Name: "stop", Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
		Description: "Take an app off its address, or withdraw its request. Only what publish asked for in this run can be stopped. The approval is kept: publish puts it on again.",
	}, answering(a.stop))
	return s
}

// answering makes a tool of what a call does. What went wrong is told in the sentence
// that the command line would end with.
func answering[In, Out any](do func(context.Context, *mcp.CallToolRequest, In) (Out, error)) mcp.ToolHandlerFor[In, Out] {
	return func(ctx context.Context, call *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, err := do(ctx, call, in)
		if err != nil {
			err = errors.New(sentence(err))
		}
		return nil, out, err
	}
}
