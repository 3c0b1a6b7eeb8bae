package people

import (
	"cmp"
	"maps"
	"slices"

	"porchlight/agent/access"
	"porchlight/agent/agentapi"
)

// Visitors carries out GET /owner/visitors: who has something open now, by
// address, a person's browsers before their remote clients.
func (p *People) Visitors() []agentapi.Visitor {
	all := p.visiting()
	all = all[:min(len(all), agentapi.MaxVisitors)]
	out := make([]agentapi.Visitor, len(all))
	for i, v := range all {
		out[i] = v.Visitor
	}
	return out
}

// Here names the visitors of each app, by its id, at most agentapi.MaxNamed, and counts all.
func (p *People) Here() (byApp map[string][]string, visitors int) {
	all := p.visiting()
	byApp = map[string][]string{}
	for _, v := range all {
		for id := range v.apps {
			if len(byApp[id]) < agentapi.MaxNamed {
				byApp[id] = append(byApp[id], v.Called())
			}
		}
	}
	return byApp, len(all)
}

// visiting is a visitor with what they have open, by app id.
type visiting struct {
	agentapi.Visitor
	apps map[string]int
}

func (p *People) visiting() []visiting {
	labels, _, _ := p.labels()
	clients := p.clientNames() // by client_id too: a second login may be here before its grant is read
	open := p.cfg.Access.Visitors()
	all := make([]visiting, len(open))
	for i, v := range open {
		all[i] = visiting{agentapi.Visitor{AccountID: v.AccountID, Email: v.Email, You: v.Owner, GrantID: v.GrantID, PasswordID: v.PasswordID, Apps: labelsOf(maps.Keys(v.Apps), labels)}, v.Apps}
		switch {
		case v.GrantID != "":
			all[i].ClientName = cmp.Or(clients[v.ClientID], v.ClientID)
		case v.Sender != "":
			all[i].ClientName = v.Sender
		case v.PasswordID != "":
			all[i].ClientName = clients[v.PasswordID]
		}
		for _, n := range v.Apps {
			all[i].Connections += n
		}
	}
	slices.SortFunc(all, func(a, b visiting) int {
		return cmp.Or(cmp.Compare(a.Email, b.Email), cmp.Compare(a.ClientName, b.ClientName), cmp.Compare(a.GrantID+a.PasswordID, b.GrantID+b.PasswordID))
	})
	return all
}

// Disconnect carries out POST /owner/visitors/disconnect: what one visitor has
// open is closed; see access.Disconnect. Nobody's access changes.
func (p *People) Disconnect(d agentapi.DisconnectRequest) (agentapi.Closed, error) {
	if d.AccountID == "" {
		return agentapi.Closed{}, agentapi.Errorf(agentapi.CodeInvalid, "The field %q is missing.", "accountId")
	}
	about := p.cutOff(d)
	began := p.cfg.Now()
	closed, err := p.cfg.Access.Disconnect(access.Party{AccountID: d.AccountID, GrantID: d.GrantID, PasswordID: d.PasswordID})
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
		if v.AccountID == d.AccountID && v.GrantID == d.GrantID && v.PasswordID == d.PasswordID {
			line.Email, line.What = v.Email, v.ClientName
			if len(v.Apps) == 1 {
				line.App = v.Apps[0]
			}
		}
	}
	return line
}
