package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
)

// Who has something open now, and closing what one of them has.

func (a *API) visitors(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, a.cfg.People.Visitors())
}

func (a *API) disconnectVisitor(w http.ResponseWriter, r *http.Request) error {
	f, err := readFields(r, "accountId", "grantId")
	if err != nil {
		return err
	}
	var d agentapi.DisconnectRequest
	if d.AccountID, err = f.text("accountId"); err != nil {
		return err
	}
	if f["grantId"] != nil {
		if d.GrantID, err = f.text("grantId"); err != nil {
			return err
		}
	}
	closed, err := a.cfg.People.Disconnect(d)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, closed)
}
