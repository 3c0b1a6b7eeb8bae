package agentapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// Assistance is what an assistant has to be told to use an app. It opens nothing: whoever
// uses the app signs in and allows it.
type Assistance struct {
	URL                 string `json:"url"`
	AuthorizationServer string `json:"authorizationServer"` // its issuer (RFC 8414)
	// MCPServers is the block that most assistants take in their settings.
	MCPServers map[string]MCPServer `json:"mcpServers"`
	Command    string               `json:"command"` // of Claude Code, but for the client's id
	// Assistants are the usual ones; the last one, which has no name, is any other.
	Assistants []Assistant `json:"assistants"`
	// Local is true where this computer is connected to nothing: only an assistant that
	// runs here can reach it, and has to trust the certificate (PEM) in the file RootCA.
	Local  bool   `json:"local"`
	RootCA string `json:"rootCa,omitempty"`
}

// MCPServer is one server in the settings of an assistant.
type MCPServer struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// What an Assistant is told the address with.
const (
	TakesAddress  = "address"  // alone
	TakesSettings = "settings" // in a block of its settings
	TakesCommand  = "command"  // in a terminal
)

// Assistant is one of those that people use, and what to paste into it.
type Assistant struct {
	Name      string `json:"name"`
	Takes     string `json:"takes"`
	Paste     string `json:"paste"` // with the client's id, where that is known
	Elsewhere bool   `json:"elsewhere"`
	// ClientID is the id of a client of that name that is known on this computer; empty for
	// none. Its secret, if it has one, is with whoever made it.
	ClientID string `json:"clientId,omitempty"`
}

// DefaultAssistPath is where most apps answer assistants.
const DefaultAssistPath = "/mcp"

// IsAssistPath says whether a path can stand in an address and in a command as it is.
func IsAssistPath(path string) bool {
	const plain = "/-_.~%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	_, err := url.PathUnescape(path)
	return err == nil && strings.HasPrefix(path, "/") && len(path) <= 1024 && strings.Trim(path, plain) == ""
}

// Assist says what to tell an assistant so that it can use a live app that answers it at
// a path; empty for the one of its options, or DefaultAssistPath. GET /owner/apps/{name}/assist.
func (c *Client) Assist(ctx context.Context, name, path string) (Assistance, error) {
	return call[Assistance](ctx, c, http.MethodGet, appPath(name, "assist")+"?path="+url.QueryEscape(path), nil)
}

// AddClientRequest is the body of POST /owner/clients.
type AddClientRequest struct {
	Name string `json:"name"` // of one of Assistance.Assistants
}

// AddedClient answers it.
type AddedClient struct {
	ClientID string `json:"clientId"`
}
