package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// Programs of others that the owner named: senders decides.

func (a *API) listSenders(r *http.Request) (any, error) { return a.cfg.Senders.List(r.Context()) }

func (a *API) addSender(r *http.Request, req agentapi.SenderRequest) (any, error) {
	return a.cfg.Senders.Add(r.Context(), req)
}

func (a *API) changeSenderSecret(r *http.Request, req agentapi.SenderSecret) (any, error) {
	return a.cfg.Senders.ChangeSecret(r.Context(), r.PathValue("id"), req)
}

func (a *API) revokeSender(r *http.Request) (any, error) {
	return a.cfg.Senders.Revoke(r.Context(), r.PathValue("id"))
}
