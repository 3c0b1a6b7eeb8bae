package controlapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A control plane of before version 0.1.0, whose answers do not say what it speaks, is not
// worked with: it would ignore the end of a share, and what it answers to a removal is no
// answer. What is no control plane's answer at all is not called one.
func TestControlPlaneOfBefore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		before bool
	}{
		{http.StatusOK, `{}`, true},
		{http.StatusNotFound, `{"error": "not_found", "message": "There is nothing at this address."}`, true},
		{http.StatusOK, `<html>Sign in to the hotel's network</html>`, false},
		{http.StatusNotFound, `{"detail": "Not Found"}`, false},
		{http.StatusBadGateway, `{"message": "Bad gateway"}`, false},
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Del(HeaderProtocol)
			if r.URL.Path == PathPasswordsRevoke && tt.body == `{}` {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		answers := c.Answers(t.Context())
		_, enrolled := c.Enrol(t.Context(), EnrolRequest{})
		for _, err := range []error{answers, enrolled, c.RevokePassword(t.Context(), "x")} {
			e, ok := err.(*Error)
			if !ok || e.Code != CodeUnavailable || errors.Is(err, ErrOfBefore) != tt.before || strings.Contains(e.Message, "before 0.1.0") != tt.before {
				t.Errorf("%d %s: %v", tt.status, tt.body, err)
			}
		}
	}
}

// An agent reads a snapshot with fields that it does not know, at any depth: what a
// later control plane tells its later agents.
func TestSnapshotOfALaterVersion(t *testing.T) {
	t.Parallel()
	var s Snapshot
	err := json.Unmarshal([]byte(`{"version": "v1", "later": {"a": [1]}, "computer": {"id": "c", "later": 1},
		"passwords": [{"id": "p", "accountId": "a", "appId": "app1", "hash": "h", "later": null}]}`), &s)
	if err != nil || s.Version != "v1" || s.Computer.ID != "c" || len(s.Passwords) != 1 || s.Passwords[0].Hash != "h" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestPasswordCalls(t *testing.T) {
	t.Parallel()
	var got []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		switch {
		case r.URL.Path == PathPasswordsRevoke:
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodPost:
			io.WriteString(w, `{"id": "p", "password": "plp_x"}`)
		default:
			io.WriteString(w, `{"passwords": [{"id": "p", "email": "bob@example.com", "createdAt": "2026-11-22T10:00:00Z"}]}`)
		}
	})
	list, err := c.Passwords(t.Context())
	if err != nil || len(list) != 1 || list[0].Email != "bob@example.com" || list[0].CreatedAt.IsZero() {
		t.Errorf("listed %+v, %v", list, err)
	}
	if made, err := c.MakePassword(t.Context(), MakePassword{App: "app1", Name: "sync"}); err != nil || made != (MadePassword{"p", "plp_x"}) {
		t.Errorf("made %+v, %v", made, err)
	}
	if err := c.RevokePassword(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	want := `GET /v1/passwords |POST /v1/passwords {"app":"app1","name":"sync"}|POST /v1/passwords/revoke {"id":"p"}`
	if all := strings.Join(got, "|"); all != want {
		t.Errorf("asked %s", all)
	}
}
