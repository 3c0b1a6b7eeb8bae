package localapi

import (
	"net/http"

	"porchlight/agent/agentapi"
	"porchlight/agent/people"
)

// What the owner took away and may take back for a moment: the window's Undo.

func (a *API) undoHeld(w http.ResponseWriter, r *http.Request) error {
	h, err := readHeld(r)
	if err != nil {
		return err
	}
	if h.AccountID == "" {
		return invalid("The field \"accountId\" is missing.")
	}
	changed, err := a.cfg.People.TakeBack(h)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, changed)
}

func (a *API) settleHeld(w http.ResponseWriter, r *http.Request) error {
	h, err := readHeld(r)
	if err != nil {
		return err
	}
	if err := a.cfg.People.Settle(r.Context(), h); err != nil {
		return err
	}
	return answer(w, http.StatusOK, agentapi.Done{OK: true})
}

// readHeld reads which change is meant; fields that are not there are empty.
func readHeld(r *http.Request) (h agentapi.HeldChange, err error) {
	f, err := readFields(r, "accountId", "app")
	if err != nil {
		return h, err
	}
	for name, into := range map[string]*string{"accountId": &h.AccountID, "app": &h.App} {
		if f[name] == nil {
			continue
		}
		if *into, err = f.text(name); err != nil {
			return h, err
		}
	}
	return h, nil
}

// heldFor reads how long the owner wants a change held, 0 where nobody says. Of
// a program the field is one of those nobody knows.
func heldFor(f fields, by people.Actor) (seconds int, err error) {
	if !by.Owner || f["holdSeconds"] == nil {
		return 0, nil
	}
	return f.integer("holdSeconds")
}
