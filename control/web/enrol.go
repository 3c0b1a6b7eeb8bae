package web

import (
	"net/http"

	"porchlight/control/controlapi"
)

// Enrolling, as computers do it (controlapi, enrol.go). The first two need no
// credential: getting one is what they are for.

func (h *handler) enrol(w http.ResponseWriter, r *http.Request) error {
	var body controlapi.EnrolRequest
	if err := readJSONUpTo(maxAsk, w, r, &body); err != nil {
		return err
	}
	started, err := h.svc.Enrolment.Begin(r.Context(), body, clientAddr(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, started)
	return nil
}

func (h *handler) pollEnrolment(w http.ResponseWriter, r *http.Request) error {
	var body controlapi.EnrolPoll
	if err := readJSONUpTo(maxAsk, w, r, &body); err != nil {
		return err
	}
	enrolled, err := h.svc.Enrolment.Poll(r.Context(), body.DeviceCode)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, enrolled)
	return nil
}

// leave ends the credential it is asked with.
func (h *handler) leave(w http.ResponseWriter, r *http.Request, _ controlapi.Computer) error {
	if err := h.svc.Agents.EndCredential(r.Context(), bearer(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
