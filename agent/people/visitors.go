package people

import (
	"cmp"
	"maps"
	"slices"

	"porchlight/agent/agentapi"
)

// Visitors carries out GET /owner/visitors: who has something open now, by
// address, a person's browsers before their remote clients.
func (p *People) Visitors() []agentapi.Visitor {
	labels, _, _ := p.labels()
	clients := map[string]string{}
	for _, g := range p.liveGrants() {
		clients[g.ClientID] = called(g.ClientID, g.ClientName) // a second login may be here before its grant is read
	}
	open := p.cfg.Access.Visitors()
	all := make([]agentapi.Visitor, len(open))
	for i, v := range open {
		all[i] = agentapi.Visitor{AccountID: v.AccountID, Email: v.Email, GrantID: v.GrantID, Apps: labelsOf(maps.Keys(v.Apps), labels)}
		if v.GrantID != "" {
			all[i].ClientName = cmp.Or(clients[v.ClientID], v.ClientID)
		}
		for _, n := range v.Apps {
			all[i].Connections += n
		}
	}
	slices.SortFunc(all, func(a, b agentapi.Visitor) int {
		return cmp.Or(cmp.Compare(a.Email, b.Email), cmp.Compare(a.ClientName, b.ClientName), cmp.Compare(a.GrantID, b.GrantID))
	})
	return all[:min(len(all), agentapi.MaxVisitors)]
}

// Disconnect carries out POST /owner/visitors/disconnect: what one visitor has
// open is closed; see access.Disconnect. Nobody's access changes.
func (p *People) Disconnect(d agentapi.DisconnectRequest) (agentapi.Closed, error) {
	if d.AccountID == "" {
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeInvalid, "The field %q is missing.", "accountId")
	}
	about := p.cutOff(d)
	began := p.cfg.Now()
	closed, err := p.cfg.Access.Disconnect(d.AccountID, d.GrantID)
	took := p.cfg.Now().Sub(began)
	if about.Closed = closed; closed > 0 {
		p.cfg.Activity.Add(about)
	}
	p.cfg.Changes.Raise()
	if err != nil {
		p.cfg.Log.Error("a visitor was disconnected, but a session could not be ended", "err", err)
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeInternal,
			"What was open is closed, but Porchlight could not write to its data directory, so they may come back without signing in. Is the disk full?")
	}
	return agentapi.Closed{OK: true, Closed: closed, Milliseconds: int(took.Milliseconds())}, nil
}

// cutOff is the line that a visitor who is disconnected leaves.
func (p *People) cutOff(d agentapi.DisconnectRequest) agentapi.Activity {
	line := agentapi.Activity{Kind: agentapi.ActivityCut, Owner: true, AccountID: d.AccountID}
	for _, v := range p.Visitors() {
		if v.AccountID == d.AccountID && v.GrantID == d.GrantID {
			line.Email, line.What = v.Email, v.ClientName
			if len(v.Apps) == 1 {
				line.App = v.Apps[0]
			}
		}
	}
	return line
}
