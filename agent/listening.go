package agent

import (
	"porchlight/agent/agentapi"
	"porchlight/agent/listening"
)

// makeListening comes after the people, whom it asks who may open what.
func (a *Agent) makeListening() error {
	a.listening = listening.New(listening.Config{
		App: func(port int) (agentapi.AppSummary, bool) {
			open := a.people.View().Open
			app, ok := a.apps.OnPort(port, func(id string) int { return open[id].Count })
			return agentapi.AppSummary{Name: app.Name, Label: app.Label, Status: app.Status}, ok
		},
		Seen:     a.apps.PortSeen,
		Suggest:  a.apps.Suggest,
		Called:   a.containers.Name,
		OwnPorts: a.ownPorts,
		Me:       me().ID,
		Titles:   func() bool { return a.settings.Get().Titles },
	})
	return nil
}
