package local

import (
	"fmt"
	"testing"

	"porchlight/control/kv"
	"porchlight/control/mail"
	"porchlight/test/programs"
)

// TestOutboxIsCounted: the number in the owner's state is that of the mails the
// owner is shown, also where more are kept.
func TestOutboxIsCounted(t *testing.T) {
	t.Parallel()
	h := startHouse(t)
	for _, want := range []int{0, 1, outboxShown} {
		for n := len(mails(t, h)); n < want+want/10; n++ {
			err := h.controlPlane.store.Update(t.Context(), func(tx kv.Tx) error {
				return h.controlPlane.outbox.Put(tx, fmt.Sprintf("%d-%d", want, n), mail.Message{To: "bob@example.com", Subject: "s", Text: "t"})
			})
			programs.Must(t, err)
		}
		state, err := h.owner.State(t.Context())
		if listed := len(mails(t, h)); err != nil || state.OutboxSize != want || listed != want {
			t.Errorf("of %d mails the owner is told %d and shown %d, %v", want, state.OutboxSize, listed, err)
		}
	}
}
