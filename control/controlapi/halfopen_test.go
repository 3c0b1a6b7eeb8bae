package controlapi

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Weakness: a network goes half-open while a second connection rests; the sync
// that gave up on the first waits its whole patience again on the second.
// Checked: after a silence the next try is made on a new connection.
func TestSyncAfterSilenceDialsAnew(t *testing.T) {
	t.Parallel()
	var both, answered sync.WaitGroup
	both.Add(2)
	var mu sync.Mutex
	old := map[string]bool{} // the connections there were before the silence
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut { // two at a time, so that there are two connections
			mu.Lock()
			old[r.RemoteAddr] = true
			mu.Unlock()
			both.Done()
			both.Wait()
			io.WriteString(w, "{}")
			return
		}
		mu.Lock()
		known := old[r.RemoteAddr]
		mu.Unlock()
		if r.Header.Get("If-None-Match") == `"v1"` { // which may have been given up before it is read
			if !known {
				t.Error("the first sync did not take a connection that rested")
			}
			<-r.Context().Done()
			return
		}
		if known {
			t.Error("the sync after the silence took a connection from before it")
		}
		io.WriteString(w, `{"version":"v3"}`)
	})
	for range 2 {
		answered.Go(func() {
			if err := c.PutApps(t.Context(), Apps{}); err != nil {
				t.Error(err)
			}
		})
	}
	answered.Wait()
	c.Silence = 50 * time.Millisecond
	if _, err := c.Sync(t.Context(), "v1"); err == nil {
		t.Fatal("silence is no answer")
	}
	c.Silence = SyncSilence
	if s, err := c.Sync(t.Context(), "v2"); err != nil || s.Version != "v3" {
		t.Fatalf("%+v, %v", s, err)
	}
}
