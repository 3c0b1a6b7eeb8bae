package local

import (
	"testing"

	"porchlight/agent/agentapi"
)

// TestAnotherUsersProgramIsNotAsked: who listens for an approved app is looked at before
// it is asked how it does; another user's program gets nothing, and the app waits.
func TestAnotherUsersProgramIsNotAsked(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	h := startHouse(t)
	h.asksApps(t, true)
	end, _ := h.mortal(t)
	h.publish(t)
	if does, err := h.owner.Probe(t.Context(), "notes"); err != nil || does.Health != agentapi.HealthAnswers {
		t.Fatalf("%+v, %v", does, err)
	}
	end()
	other := newHeir(t, h.port)
	does, err := h.owner.Probe(t.Context(), "notes")
	if err != nil || does.Health == agentapi.HealthAnswers {
		t.Errorf("%+v, %v", does, err)
	}
	if heard := other.next(); heard != "0 bytes" {
		t.Errorf("nobody's program was sent %q", heard)
	}
	h.standing(t, agentapi.StatusPending)
	if _, err := h.owner.Probe(t.Context(), "notes"); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("while it waits: %v", err)
	}
	approved, err := h.owner.Approve(t.Context(), "notes")
	if err != nil || approved.Does().Health != agentapi.HealthAnswers {
		t.Errorf("approved: %+v, %v", approved, err)
	}
	if heard := other.next(); heard != "GET / of " {
		t.Errorf("the approved program was sent %q", heard)
	}
}
