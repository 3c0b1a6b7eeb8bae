package listening

import (
	"context"

	"porchlight/agent/agentapi"
)

// atOnce is how many listeners are asked at a time.
const atOnce = 4

// Look asks one listener for its title and icon.
func (l *Listening) Look(ctx context.Context, look agentapi.Look) (agentapi.Looked, error) {
	name, label := l.cfg.Suggest(portLabel(look.Port))
	return agentapi.Looked{Port: look.Port, Name: name, Label: label}, nil
}
