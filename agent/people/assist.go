package people

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
)

// OwnClients are the OAuth clients of a control plane in this process, for which the
// owner is the operator.
type OwnClients struct {
	// PublicID is the id of a client without a secret by its name, empty for none, and
	// AddPublic makes one.
	PublicID  func(ctx context.Context, name string) (id string, err error)
	AddPublic func(ctx context.Context, name string, redirectURIs []string) (id string, err error)
	RootCA    string // file
}

// assistant is one that people use. Whoever runs on this computer is called back at the
// redirects.
type assistant struct {
	name      string
	takes     string
	redirects []string
	paste     func(name, url, clientID string) string
}

var assistants = []assistant{
	{name: "Claude", takes: agentapi.TakesAddress},
	{name: "ChatGPT", takes: agentapi.TakesAddress},
	{name: "Claude Code", takes: agentapi.TakesCommand, paste: claudeCode, redirects: []string{"http://localhost/callback"}},
	{
		name: "Cursor", takes: agentapi.TakesSettings, redirects: []string{"cursor://anysphere.cursor-mcp/oauth/callback", "http://localhost/callback"},
		paste: settingsOf("mcpServers", "auth", "CLIENT_ID"),
	},
	{
		name: "VS Code", takes: agentapi.TakesSettings, redirects: []string{"http://127.0.0.1/", "http://127.0.0.1", "https://vscode.dev/redirect"},
		paste: settingsOf("servers", "oauth", "clientId"),
	},
	// The last one is any other.
	{
		takes: agentapi.TakesSettings, redirects: []string{"http://localhost/callback", "http://127.0.0.1/callback", "http://[::1]/callback"},
		paste: settingsOf("mcpServers", "", ""),
	},
}

// anyOther is what a client is called that the owner makes for none of those with a name.
const anyOther = "Assistant"

func claudeCode(name, url, clientID string) string {
	id := ""
	if clientID != "" {
		id = "--client-id " + clientID + " "
	}
	return "claude mcp add --transport http " + id + name + " " + url
}

// settingsOf makes the block of an assistant that lists its servers under a key, and the
// client's id within them under two more.
func settingsOf(list, auth, id string) func(name, url, clientID string) string {
	return func(name, url, clientID string) string {
		server := map[string]any{"type": "http", "url": url}
		if auth != "" && clientID != "" {
			server[auth] = map[string]string{id: clientID}
		}
		return indented(map[string]any{list: map[string]any{name: server}})
	}
}

func indented(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // texts in maps
	}
	return string(text)
}

// Assist carries out GET /owner/apps/{name}/assist.
func (p *People) Assist(ctx context.Context, account agentapi.Account, app agentapi.OwnerApp, path string) (agentapi.Assistance, error) {
	switch {
	case !agentapi.IsAssistPath(path):
		return agentapi.Assistance{}, agentapi.Errorf(agentapi.CodeInvalid, "The path has to be as it stands in an address, such as /mcp.")
	case app.URL == "" || !isWord(app.URL):
		return agentapi.Assistance{}, agentapi.Errorf(agentapi.CodeConflict, "%s is not on, so it has no address that an assistant could use.", app.Label)
	}
	address := strings.TrimSuffix(app.URL, "/") + path
	out := agentapi.Assistance{
		URL: address, AuthorizationServer: account.AuthURL, Local: account.Local,
		MCPServers: map[string]agentapi.MCPServer{app.Name: {Type: "http", URL: address}},
		Command:    claudeCode(app.Name, address, "ID"),
	}
	if p.cfg.OwnClients != nil {
		out.RootCA = p.cfg.OwnClients.RootCA
	}
	for _, a := range assistants {
		id, err := p.clientCalled(ctx, cmp.Or(a.name, anyOther))
		if err != nil {
			return agentapi.Assistance{}, refusal(err)
		}
		one := agentapi.Assistant{Name: a.name, Takes: a.takes, ClientID: id, Paste: address, Elsewhere: a.redirects == nil}
		if a.paste != nil {
			one.Paste = a.paste(app.Name, address, id)
		}
		out.Assistants = append(out.Assistants, one)
	}
	return out, nil
}

// clientCalled is the id of the client of a name: the owner's own, or else one that
// somebody here allowed something already.
func (p *People) clientCalled(ctx context.Context, name string) (string, error) {
	if p.cfg.OwnClients != nil {
		return p.cfg.OwnClients.PublicID(ctx, name)
	}
	g, _ := find(p.liveGrants(), func(g controlapi.Grant) bool {
		return strings.EqualFold(g.ClientName, name) && controlapi.ClientHost(g.ClientID) == "" && isWord(g.ClientID)
	})
	return g.ClientID, nil
}

// isWord says whether what a server calls something can stand in a command as it is: the
// owner pastes it into a terminal, where a server has no say.
func isWord(text string) bool {
	const plain = "-_.:/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return strings.Trim(text, plain) == "" && !strings.HasPrefix(text, "-")
}

// AddClient carries out POST /owner/clients: a client without a secret for an assistant
// that runs on this computer. One that is there already is answered again.
func (p *People) AddClient(ctx context.Context, req agentapi.AddClientRequest) (agentapi.AddedClient, error) {
	i := slices.IndexFunc(assistants, func(a assistant) bool { return a.name == req.Name })
	switch {
	case p.cfg.OwnClients == nil:
		return agentapi.AddedClient{}, agentapi.Errorf(agentapi.CodeConflict, "The ids of assistants are given by whoever runs the server.")
	case i < 0:
		return agentapi.AddedClient{}, agentapi.Errorf(agentapi.CodeInvalid, "There is no assistant of that name.")
	}
	name := cmp.Or(req.Name, anyOther)
	id, err := p.cfg.OwnClients.PublicID(ctx, name)
	if id == "" && err == nil {
		id, err = p.cfg.OwnClients.AddPublic(ctx, name, assistants[i].redirects)
	}
	if err != nil {
		return agentapi.AddedClient{}, refusal(err)
	}
	return agentapi.AddedClient{ClientID: id}, nil
}
