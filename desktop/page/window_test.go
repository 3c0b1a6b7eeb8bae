package page

import (
	"fmt"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/language"
	"porchlight/desktop/ui"
	"porchlight/internal/words"
)

// What the page called and was not done is told in the owner's language, as a sentence.
// The language is the process', so this runs beside no other test.
func TestErrorsForThePage(t *testing.T) {
	defer language.Speak(language.Spoken().Tag())
	refusal := agentapi.Errorf(agentapi.CodeConflict, "%q is paused. Resume it first.", "Notes")
	for _, c := range []struct {
		err             error
		english, german string
	}{
		{ui.ErrNotReady, "Porchlight is still starting.", "Porchlight startet noch."},
		{fmt.Errorf("what: %w", ui.ErrNotReady), "What: Porchlight is still starting.", "Porchlight startet noch."},
		{refusal, `"Notes" is paused. Resume it first.`, "„Notes“ ist pausiert. Setzen Sie die App zuerst fort."},
		{words.Errorf("the disk is full"), "The disk is full.", "The disk is full."},
	} {
		for l, want := range map[words.Language]string{words.English: c.english, words.German: c.german} {
			language.Speak(l.Tag())
			if got := forPage(c.err); got != want {
				t.Errorf("%s: %q, want %q", l.Tag(), got, want)
			}
		}
	}
}
