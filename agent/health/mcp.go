package health

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"porchlight/internal/oneline"
)

// How an app is asked of which the owner says that it speaks MCP, the protocol of
// assistants: by what a client of it sends first.

const (
	// mcpPresent is the version of MCP whose clients begin with server/discover and have no
	// sessions.
	mcpPresent = "2026-07-28"
	// mcpSessions is the last version whose clients begin with initialize; the server may
	// give them a session.
	mcpSessions = "2025-11-25"

	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	events        = "text/event-stream"
	// maxClaim is how much is told of the name a server gives itself, in characters.
	maxClaim = 60
)

// spoken is what an app was found to speak where it is said to speak MCP.
type spoken struct {
	version string // of MCP; empty for none
	name    string // that the server gives itself, fit to be shown; empty for none
	former  bool   // the protocol before 2025-03-26 alone, HTTP with SSE
}

// What clients send first. 1 is the id that the answer names.
var (
	discover   = message("server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+mcpPresent+`","io.modelcontextprotocol/clientInfo":`+whoAsks+`,"io.modelcontextprotocol/clientCapabilities":{}}}`)
	initialize = message("initialize", `{"protocolVersion":"`+mcpSessions+`","capabilities":{},"clientInfo":`+whoAsks+`}`)
)

const whoAsks = `{"name":"` + userAgent + `","version":"1"}`

func message(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

// mcp asks at the option's path, or where that leads to at the app itself, in the present
// protocol, then with initialize, then in the former one: as long as the answer is neither
// MCP nor a refusal.
func (p *prober) mcp(ctx context.Context, host string) (page, error) {
	at := p.app.Options.MCP
	present := http.Header{headerVersion: {mcpPresent}, "Mcp-Method": {"server/discover"}}
	got, err := p.say(ctx, host, at, discover, present)
	if to := p.onward(got); err == nil && to != "" && (got.status == http.StatusTemporaryRedirect || got.status == http.StatusPermanentRedirect) {
		at = to
		got, err = p.say(ctx, host, at, discover, present)
	}
	if err != nil || got.mcp.version != "" || got.status != http.StatusBadRequest && refusal(got.status) {
		return got, err
	}
	if got, err = p.say(ctx, host, at, initialize, nil); err != nil || got.mcp.version != "" || got.status == http.StatusUnauthorized {
		return got, err
	}
	stream, err := p.ask(ctx, p.app.Target(), host, at, request{header: http.Header{"Accept": {events}}})
	if err != nil || !isEvents(stream) {
		return got, nil // the answer before says more
	}
	for name := range eventsOf(stream.start) {
		if name == "endpoint" {
			stream.mcp.former = true
			return stream, nil
		}
	}
	return got, nil
}

// say sends a message, reads what was answered, and ends the session that came with it.
func (p *prober) say(ctx context.Context, host, path, message string, header http.Header) (page, error) {
	sent := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, " + events}}
	maps.Copy(sent, header)
	got, err := p.ask(ctx, p.app.Target(), host, path, request{method: http.MethodPost, header: sent, body: message})
	got.mcp = understood(got)
	if session := got.header.Get(headerSession); session != "" {
		// Also of one that answered so late that no time is left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.bodyFor)
		defer cancel()
		_, _ = p.ask(ctx, p.app.Target(), host, path, request{method: http.MethodDelete, header: http.Header{
			headerSession: {session}, headerVersion: {mcpSessions},
		}}) // a server may not let clients end them
	}
	return got, err
}

// understood is what an answer to one of our messages says, alone or as an event.
func understood(got page) spoken {
	if !isEvents(got) {
		return readMessage(got.start)
	}
	for _, data := range eventsOf(got.start) {
		if s := readMessage(data); s.version != "" {
			return s
		}
	}
	return spoken{}
}

func isEvents(got page) bool {
	kind, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), events)
}

// eventsOf are the whole events of a stream, by name.
func eventsOf(stream []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		blocks := bytes.Split(bytes.ReplaceAll(stream, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
		for _, block := range blocks[:len(blocks)-1] {
			name, data := "", []byte(nil)
			for line := range bytes.SplitSeq(block, []byte("\n")) {
				field, value, _ := bytes.Cut(line, []byte(":"))
				switch value = bytes.TrimPrefix(value, []byte(" ")); string(field) {
				case "event":
					name = string(value)
				case "data":
					data = append(append(data, value...), '\n')
				}
			}
			if !yield(name, data) {
				return
			}
		}
	}
}

// readMessage reads the result of server/discover or initialize, or the refusal of a version
// that names others.
func readMessage(raw []byte) spoken {
	type info struct {
		Name string `json:"name"`
	}
	var answer struct {
		ID     int `json:"id"`
		Result struct {
			Version  string   `json:"protocolVersion"`
			Versions []string `json:"supportedVersions"`
			Server   info     `json:"serverInfo"`
			Meta     struct {
				Server info `json:"io.modelcontextprotocol/serverInfo"`
			} `json:"_meta"`
		} `json:"result"`
		Error struct {
			Data struct {
				Versions []string `json:"supported"`
			} `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &answer) != nil || answer.ID != 1 {
		return spoken{}
	}
	versions := append(append(answer.Result.Versions, answer.Error.Data.Versions...), answer.Result.Version)
	versions = slices.DeleteFunc(versions, func(v string) bool { return !isVersion.MatchString(v) })
	if len(versions) == 0 {
		return spoken{}
	}
	return spoken{version: slices.Max(versions), name: claim(cmp.Or(answer.Result.Server.Name, answer.Result.Meta.Server.Name))}
}

var isVersion = regexp.MustCompile(`^20\d\d-\d\d-\d\d$`)

// claim is what a server says of itself, cut to what an owner reads: nothing that steers a
// terminal, turns what stands beside it or ends the quotation it stands in.
func claim(text string) string {
	unquoted := func(r rune) rune {
		if strings.ContainsRune(`"“”„‟«»`, r) {
			return -1
		}
		return r
	}
	text = strings.TrimSpace(oneline.Printable(strings.Map(unquoted, strings.ToValidUTF8(text, ""))))
	if utf8.RuneCountInString(text) > maxClaim {
		text = string([]rune(text)[:maxClaim-1]) + "…"
	}
	return text
}
