package people_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"porchlight/agent/store"
	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// Weakness: taking away waits for nothing, so a program that names people who do not exist
// had the control plane asked without end, in the turn of the owner's changes; and one that
// takes the same away again and again had a change kept for each until the next snapshot.
// Checked: what names nobody is paced, and keeps nobody from being removed who is there;
// one change is kept.
func TestTakingAwayIsBounded(t *testing.T) {
	t.Parallel()
	r, bob := startWithBob(t, "Notes")
	capability := r.capability(t)
	var asked atomic.Int64
	on := func(req *http.Request) {
		if strings.HasPrefix(req.URL.Path, controlapi.PathPeople) {
			asked.Add(1)
		}
	}
	r.gate.on.Store(&on)
	refused := 0
	for n := range 100 {
		if r.call(t, "POST", "/people/revoke", fmt.Sprintf(`{"accountId":"nobody%d"}`, n), capability).status == http.StatusTooManyRequests {
			refused++
		}
	}
	if n := asked.Load(); refused < 50 || n > 3*50 {
		t.Errorf("%d of 100 refused, the control plane asked %d times", refused, n)
	}
	arrive := r.gate.holdSyncs()
	for range 20 {
		if got := r.call(t, "POST", "/people/grant", fmt.Sprintf(`{"accountId":%q,"app":"Notes","granted":false}`, bob), capability); got.status != http.StatusOK {
			t.Fatalf("HTTP %d %v", got.status, got.body)
		}
	}
	r.end()
	arrive()
	s := programs.Got(store.Open(r.dir))(t)
	defer s.Close()
	kept, err := s.Pending()
	denied, err2 := s.DenyRecords()
	if err != nil || err2 != nil || len(kept) != 1 || len(denied) != 1 {
		t.Errorf("%d changes are kept and %d denials, %v, %v", len(kept), len(denied), err, err2)
	}
}
