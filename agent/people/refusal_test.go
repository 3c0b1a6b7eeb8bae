package people

import (
	"errors"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control/controlapi"
	"porchlight/internal/words"
)

// TestRefusalsAreSaidInGerman holds what the server refuses, and what is said where it
// does not answer, to words that the owner's screen has.
func TestRefusalsAreSaidInGerman(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{controlapi.Refuse(controlapi.CodeInvalid, words.Of("%s has no invitation that works. Invite them again.", "bob@example.com")),
			"bob@example.com hat keine Einladung, die gilt. Laden Sie diese Person noch einmal ein."},
		{controlapi.Refuse(controlapi.CodeUnavailable, words.Of("%s does not answer.", "control.example")),
			"Der Server ist gerade nicht zu erreichen. Versuchen Sie es gleich noch einmal."},
		{controlapi.OfBefore("control.example"),
			"control.example läuft mit einem Porchlight von vor 0.1.0, mit dem dieses nicht zusammenarbeitet. Bitten Sie die Betreiber, es zu aktualisieren."},
		{controlapi.Refuse(controlapi.CodeUnauthorized, words.Of("%s does not answer.", "control.example")),
			"Der Server kennt diesen Computer nicht mehr. Der Besitzer muss ihn wieder verbinden."},
	} {
		e, ok := errors.AsType[*agentapi.Error](refusal(c.err))
		if !ok {
			t.Fatalf("%v became %v", c.err, refusal(c.err))
		}
		if got := words.German.Or(e.Words, e.Message); got != c.want {
			t.Errorf("%v is said %q, want %q", c.err, got, c.want)
		}
	}
}
