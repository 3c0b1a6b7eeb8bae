package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
	"porchlight/control/mail"
)

// slowStore takes its time to read what is known before, and may then refuse.
type slowStore struct {
	kv.Store
	takes time.Duration
	err   error
}

func (s *slowStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	return s.Store.ViewOf(ctx, rows, fn)
}

// Weakness: a store that is slow makes agents give up after SyncSilence, so that what
// was done for them was done in vain, and they ask again. Checked: the answer begins
// within half a beat, with a byte each beat; what is refused before that has its
// status, as ever, and what is refused later a body that agents understand.
func TestSyncBeginsBeforeTheStoreAnswers(t *testing.T) {
	t.Parallel()
	const half = controlapi.SyncBeat / 2
	for _, tt := range []struct {
		name    string
		takes   time.Duration // each of two statements, or of one for a stranger
		err     error
		unknown bool // the credential

		at     []time.Duration // of the pieces of the answer
		status int
		code   string
		retry  string
		later  time.Duration
	}{
		{name: "quick", takes: half / 4, at: []time.Duration{half / 2}, status: 200},
		{name: "slow", takes: 3 * half, at: []time.Duration{half, 3 * half, 5 * half, 6 * half}, status: 200},
		{name: "a stranger", takes: half / 2, unknown: true, at: []time.Duration{half / 2}, status: 401, code: controlapi.CodeUnauthorized},
		{name: "a stranger, late", takes: 2 * half, unknown: true, at: []time.Duration{half, 2 * half}, status: 200, code: controlapi.CodeUnauthorized},
		{name: "too many wait", err: &kv.BusyError{RetryAfter: 7 * time.Second}, at: []time.Duration{0}, status: 503, code: controlapi.CodeUnavailable, retry: "7"},
		{
			name: "too many wait, late", takes: 2 * half, err: &kv.BusyError{RetryAfter: 6500 * time.Millisecond},
			at: []time.Duration{half, 2 * half}, status: 200, code: controlapi.CodeUnavailable, later: 7 * time.Second,
		},
		{name: "away, late", takes: 2 * half, err: kv.ErrUnavailable, at: []time.Duration{half, 2 * half}, status: 200, code: controlapi.CodeUnavailable, later: 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &slowStore{Store: openStore(t, "memory:")}
				svc := must(control.New(control.Config{
					Store: store, Naming: control.Naming{Domain: "localhost", AuthHost: "control.localhost"}, Mail: mail.NewOutbox(store, nil),
				}))
				owner := must(svc.Computers.Ensure(t.Context(), "maya@example.com", "maya"))
				if tt.unknown {
					owner.Credential = strings.Repeat("x", len(owner.Credential))
				}
				store.takes, store.err = tt.takes, tt.err
				w := &timedWriter{head: http.Header{}, start: time.Now()}
				req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, controlapi.PathSync, nil)
				req.Header.Set("Authorization", "Bearer "+owner.Credential)
				req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
				New(svc, Config{}).ServeHTTP(w, req)

				if len(w.at) != len(tt.at) {
					t.Fatalf("written at %v: %q", w.at, w.body.String())
				}
				for i, at := range tt.at {
					if w.at[i] != at {
						t.Errorf("written at %v", w.at)
						break
					}
				}
				if w.status != tt.status || w.head.Get("Retry-After") != tt.retry || w.head.Get("Content-Type") != "application/json" {
					t.Errorf("%d, %v", w.status, w.head)
				}
				// As an agent reads it.
				c := &controlapi.Client{BaseURL: "https://control.localhost", HTTP: &http.Client{Transport: answered{w}}}
				snapshot, err := c.Sync(t.Context(), "")
				if tt.code == "" {
					if err != nil || len(snapshot.People) != 1 {
						t.Errorf("an agent reads %+v, %v", snapshot, err)
					}
					return
				}
				refusal, ok := err.(*controlapi.Error)
				if !ok || refusal.Code != tt.code || refusal.Message == "" || refusal.RetryAfter != max(tt.later, time.Duration(len(tt.retry))*7*time.Second) {
					t.Errorf("an agent reads %+v", err)
				}
				if ok && tt.code == controlapi.CodeUnauthorized && refusal.HTTPStatus != http.StatusUnauthorized {
					t.Errorf("the status is %d", refusal.HTTPStatus)
				}
			})
		})
	}
}

// answered is a server that has given its answer.
type answered struct{ w *timedWriter }

func (a answered) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	for name, values := range a.w.head {
		rec.Header()[name] = values
	}
	rec.WriteHeader(a.w.status)
	rec.WriteString(a.w.body.String())
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}
