package agentapi

import "porchlight/internal/words"

// Asks is what sent a request for an address.
type Asks struct {
	// Program and User are those at the other end of the request's connection, as the
	// system tells; empty where it does not.
	Program string `json:"program,omitempty"`
	User    string `json:"user,omitempty"`
	// Assistant is what a coding agent calls itself; empty where none says that it asks.
	// It is a claim that anybody can make, and all it does is to be read by the owner.
	Assistant string `json:"assistant,omitempty"`
}

// WhoAsks says what program of which user sent a request, unless it is just the one that
// listens, and that a coding agent is behind it. show makes a name fit for where the
// sentences are read.
func (a OwnerApp) WhoAsks(show func(string) string) (said words.Text) {
	var asks Asks
	if a.Asks != nil {
		asks = *a.Asks
	}
	switch {
	case a.AskedBy != "" && asks.Program != "":
		said = append(said, words.Of("Asked for by %[1]s, run by %[2]s, another user.", show(asks.Program), show(a.AskedBy)))
	case a.AskedBy != "":
		said = append(said, words.Of("Asked for by %s, another user.", show(a.AskedBy)))
	case asks.Program != "" && (asks.Program != a.Listener.Program || asks.Assistant != ""):
		said = append(said, words.Of("Asked for by %[1]s, run by %[2]s.", show(asks.Program), show(asks.User)))
	}
	if asks.Assistant != "" {
		said = append(said, words.Of("A coding agent asks. It calls itself “%s”.", show(asks.Assistant)))
	}
	return said
}
