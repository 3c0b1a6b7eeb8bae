package notes_test

import (
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/notes"
	"porchlight/desktop/verbs"
	"porchlight/test/owner"
)

// An app that ails, or answers with an error to everybody, is on all the same, and the
// note says what is known of it.
func TestApprovedSaysWhatAils(t *testing.T) {
	t.Parallel()
	for h, known := range map[string]bool{"": false, "not answering": true, "of a later version": true} {
		for _, noted := range []bool{false, true} {
			one := owner.Doing("a", h)
			one.HealthNote = noted
			n := notes.Approved(verbs.Action{Verb: verbs.Approve, Label: "App a"}, agentapi.OwnerApp{}, agentapi.Approved{Publication: agentapi.Publication{Status: agentapi.StatusLive}, AppHealth: &one.AppHealth})
			if n.Title != "App a is on" || strings.Contains(n.Body, one.HealthDetail) != (known || noted) {
				t.Errorf("%q: told %+v", h, n)
			}
		}
	}
}
