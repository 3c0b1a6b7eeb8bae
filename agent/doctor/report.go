package doctor

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/internal/oneline"
)

// Lines are findings as a terminal and the report show them.
func Lines(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%-6s %-13s %s\n", f.State, f.Check, oneline.Printable(f.Text))
		if f.Next != "" {
			fmt.Fprintf(&b, "%20s %s\n", "", oneline.Printable(f.Next))
		}
	}
	return b.String()
}

// Report is what was found as a text that may be shown to anybody: apps, ports and
// versions stay in it; mail addresses, users, the computer's address and its folders do
// not. No finding holds a secret.
func Report(version string, at time.Time, state agentapi.OwnerState, dir string, findings []Finding) string {
	public := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Check == "CAA" }) // names an account
	head := fmt.Sprintf("Porchlight %s, protocol %v, %s, %s/%s, %s\n\n", version, agentapi.Protocol, state.Mode, runtime.GOOS, runtime.GOARCH, at.UTC().Format("2006-01-02 15:04 MST"))
	return head + hiding(state, dir)(Lines(public))
}

// hiding takes out of a text what says whose computer it is.
func hiding(state agentapi.OwnerState, dir string) func(string) string {
	home, _ := os.UserHomeDir()
	bare, _, _ := strings.Cut(state.Account.Host, ":")
	hide := []hidden{{dir, "DATA"}, {home, "HOME"}, {state.Account.Host, "COMPUTER"}, {bare, "COMPUTER"}}
	users := []string{}
	for _, u := range state.Users {
		users = append(users, u.Name)
	}
	for _, app := range state.Apps {
		users = append(users, app.Listener.User, app.AskedBy)
		if app.Asks != nil {
			users = append(users, app.Asks.User)
		}
		if app.ApprovedListener != nil {
			users = append(users, app.ApprovedListener.User)
		}
	}
	for _, user := range users {
		hide = append(hide, hidden{user, "USER"})
	}
	// The longest first: a folder within a folder, a host below a host.
	slices.SortStableFunc(hide, func(a, b hidden) int { return cmp.Compare(len(b.what), len(a.what)) })
	return func(text string) string {
		text = mailAddress.ReplaceAllString(text, "ADDRESS")
		for _, h := range hide {
			if h.what != "" {
				text = regexp.MustCompile(`(^|[^\pL\pN_])`+regexp.QuoteMeta(h.what)+`([^\pL\pN_]|$)`).ReplaceAllString(text, "${1}"+h.with+"${2}")
			}
		}
		return text
	}
}

type hidden struct{ what, with string }

// mailAddress finds what could be one, and rather too much.
var mailAddress = regexp.MustCompile(`[^\s"'<>(),;:]+@[^\s"'<>(),;:]+`)
