package agent

import "porchlight/agent/people"

// makePeople comes after makeLink.
func (a *Agent) makePeople() (err error) {
	cfg := people.Config{
		Apps:     a.apps,
		Access:   a.access,
		Store:    a.store,
		OnChange: a.changes.Raise,
		Activity: a.access.AddActivity,
		Log:      a.cfg.Log.With("part", "people"),
	}
	if a.client != nil {
		cfg.Control = a.client
		cfg.Report = a.remote.Report
		cfg.Away = func() bool { return !a.remote.State().Connected }
		cfg.Refused = func() bool { return a.remote.State().Refused }
	}
	a.people, err = people.New(cfg)
	return err
}
