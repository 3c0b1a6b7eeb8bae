package proxy

import (
	"net/http"
	"strings"

	"porchlight/agent/access"
	"porchlight/control/controlapi"
	"porchlight/internal/noaccess"
	"porchlight/internal/words"
)

// noAccess tells a signed-in visitor that this is not theirs, on the page that the
// control plane shows too. It shows the host and never the label: what the app is
// called is for those who may open it.
func (p *Proxy) noAccess(vhost virtualHost, email string, why access.Reason) *answer {
	text := words.Of("You can’t open %s.", vhost.shown())
	if email != "" {
		text = words.Of("That address can’t open %s.", vhost.shown())
	}
	page := &noaccess.Page{
		Email: email, Host: vhost.shown(), Owner: vhost.root.Name, Ask: p.asks(vhost, why),
		SignOut: noaccess.Form{Method: "post", Action: pathSignOut, Fields: []noaccess.Field{{Name: "again", Value: "1"}}},
	}
	if vhost.app.ID != "" {
		page.Apps = originOf("", vhost.root) + "/"
	}
	return &answer{
		Status: http.StatusForbidden, Host: vhost.shown(), NoAccess: page,
		Title: words.Of("This isn’t shared with you"), Text: one(text),
	}
}

// asks leads to the control plane's page where the visitor can ask the owner; nil where
// that would say no more than this one. A form there asks: one here would come from
// another site.
func (p *Proxy) asks(vhost virtualHost, why access.Reason) *noaccess.Form {
	auth := strings.TrimSpace(p.authOrigin())
	from := p.config.Access.Snapshot().Knocking
	switch {
	case auth == "" || from == controlapi.KnocksFromNobody:
		return nil
	case why == access.ReasonNotGiven:
	case why == access.ReasonUnknown || why == access.ReasonNotActive:
		if from != controlapi.KnocksFromEverybody {
			return nil
		}
	default:
		return nil
	}
	return &noaccess.Form{Method: "get", Action: auth + controlapi.PathKnock, Fields: []noaccess.Field{
		{Name: controlapi.ParamComputer, Value: vhost.root.Name}, {Name: controlapi.ParamApp, Value: vhost.app.ID}, {Name: controlapi.ParamHost, Value: strings.TrimPrefix(originOf(vhost.app.Name, vhost.root), "https://")},
	}}
}
