package doctor

import (
	"context"
	"fmt"
	"strings"

	"porchlight/agent/agentapi"
	"porchlight/internal/oneline"
)

// How apps do, in doctor's words. What is so says the agent.

// TakeOption says what to type to take a suggestion; empty for none.
func TakeOption(name string, change map[string]any) string {
	var flags strings.Builder
	for _, o := range agentapi.Options {
		switch value := change[o.Name].(type) {
		case nil:
		case bool:
			flags.WriteString(" --" + o.Flag() + strings.TrimPrefix(fmt.Sprintf("=%t", value), "=true"))
		default:
			fmt.Fprintf(&flags, " --%s %s", o.Flag(), oneline.Printable(fmt.Sprint(value)))
		}
	}
	if flags.Len() == 0 {
		return ""
	}
	return "To take that option, type: porchlight options " + name + flags.String()
}

// checkHealth is what doctor says of a live app. ask has the agent ask it, unless it
// did a moment ago.
func checkHealth(ctx context.Context, name string, app agentapi.OwnerApp, ask Asker) []Finding {
	h, err := ask(ctx, app.Name)
	if err != nil {
		h = app.AppHealth // an agent that is busy, or of an earlier version
	}
	f := Found(name, wrong, h.Sentence(app.Label), healthNext(app.Name, h))
	switch {
	case h.Health == agentapi.HealthUnknown:
		f.State, f.Text = note, fmt.Sprintf("Whether %s answers on port %d is not known.", app.Label, app.LocalPort)
	case !h.Ails() && len(h.HealthOption) == 0 && !h.HealthNote:
		f.State = fine
	case !h.Ails():
		f.State = note
	}
	found := []Finding{f}
	if last := h.LastError; last != nil {
		found = append(found, Found(name, note, fmt.Sprintf("The last visitor whom %s failed came at %s: %s", app.Label, last.At.Local().Format("2006-01-02 15:04"), last.Text), ""))
	}
	return found
}

// Asker asks an app how it does.
type Asker func(ctx context.Context, name string) (agentapi.AppHealth, error)

func healthNext(name string, h agentapi.AppHealth) string {
	if advice := TakeOption(name, h.HealthOption); advice != "" {
		return advice
	}
	switch h.Health {
	case agentapi.HealthUnknown:
		return "To have Porchlight ask your apps, type: porchlight settings --probe"
	case agentapi.HealthNothing:
		return "Start it, or publish it anew with the port it listens on."
	case agentapi.HealthAnswers:
		if h.HealthNote && h.HealthStatus != 0 {
			return "Look into its log."
		}
		return ""
	}
	return "Look into its log, and start it again."
}
