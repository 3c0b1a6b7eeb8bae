package web

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
)

// writeWithin is how long an agent may take to accept one beat, so that a dead
// connection does not hold its goroutine.
const writeWithin = 10 * time.Second

// syncAnswer is that of a sync, which may begin before it is known what it says: status
// and headers go out with the first beat, and a refusal after that is a body without
// its status, as agents have always understood it.
type syncAnswer struct {
	w     http.ResponseWriter
	out   *http.ResponseController
	begun bool
}

// beat writes a byte of white space. Not every writer has deadlines or needs flushing;
// one that is gone shows when the context ends.
func (a *syncAnswer) beat() error {
	if !a.begun {
		a.w.Header().Set("Content-Type", "application/json")
		a.w.Header().Set("Cache-Control", "no-store")
	}
	a.begun = true
	a.out.SetWriteDeadline(time.Now().Add(writeWithin))
	if _, err := a.w.Write([]byte(" ")); err != nil {
		return err
	}
	a.out.Flush()
	a.out.SetWriteDeadline(time.Time{}) // while nothing is written
	return nil
}

// end writes what the answer says.
func (a *syncAnswer) end(v any) {
	a.out.SetWriteDeadline(time.Now().Add(writeWithin))
	json.NewEncoder(a.w).Encode(v) // an error means that nobody reads it any more
}

// lateRefusal is an error in an answer that has begun, with what its header would say.
type lateRefusal struct {
	*controlapi.Error
	Seconds int `json:"retryAfter,omitempty"`
}

// beats has the answer begin, and go on beating, while the store takes its time: an
// agent gives up on a control plane that is silent, and what was done for it would be
// done in vain. Within half a beat nothing is written, so that a refusal has its
// status. stop ends it.
func (a *syncAnswer) beats(every time.Duration) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		next := time.NewTimer(every / 2)
		defer next.Stop()
		for {
			select {
			case <-over:
				return
			case <-next.C:
			}
			if a.beat() != nil {
				return // its context ends as well
			}
			next.Reset(every)
		}
	}()
	return func() { close(over); <-ended }
}

// sync waits with the answer until the computer's snapshot is another one than the
// agent has, as controlapi.Snapshot describes.
func (h *handler) sync(w http.ResponseWriter, r *http.Request) error {
	if isBefore(r) {
		return h.device(nil)(w, r)
	}
	has := strings.Trim(strings.TrimPrefix(strings.TrimSpace(r.Header.Get("If-None-Match")), "W/"), `"`)
	a := &syncAnswer{w: w, out: http.NewResponseController(w)}
	watch, snapshot, err := func() (*control.Watch, controlapi.Snapshot, error) {
		defer a.beats(h.beat)()
		return h.svc.Agents.Sync(r.Context(), bearer(r), clientAddr(r))
	}()
	if err == nil {
		h.letIn(r)
		defer watch.Stop()
	}
	switch {
	case err != nil && !a.begun:
		return err
	case err != nil:
		h.refuseLate(a, r, err)
		return nil
	case snapshot.Version != has && !a.begun:
		w.Header().Set("ETag", strconv.Quote(snapshot.Version))
		writeJSON(w, http.StatusOK, snapshot)
		return nil
	case snapshot.Version != has:
		a.end(snapshot)
		return nil
	}

	hold := time.NewTimer(controlapi.SyncWait)
	defer hold.Stop()
	beat := time.NewTicker(h.beat)
	defer beat.Stop()
	for {
		if a.beat() != nil {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-beat.C:
			continue
		case <-r.Context().Done():
			return nil
		case <-watch.Changed:
			// The credential may be what changed.
			snapshot, err := h.svc.Agents.SyncAgain(r.Context(), bearer(r), watch)
			if err != nil {
				h.refuseLate(a, r, err)
				return nil
			}
			if snapshot.Version == has {
				continue
			}
			a.end(snapshot)
			return nil
		case <-hold.C:
		case <-watch.Replaced:
		case <-h.svc.Closing():
		}
		a.end(controlapi.Snapshot{Version: has, Unchanged: true})
		return nil
	}
}

// refuseLate tells an agent whose answer has begun that there is none.
func (h *handler) refuseLate(a *syncAnswer, r *http.Request, err error) {
	if e := h.refusal(r, controlapi.PathSync, err); e != nil {
		a.end(lateRefusal{e, int(math.Ceil(e.RetryAfter.Seconds()))})
	}
}
