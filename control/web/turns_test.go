package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"porchlight/control"
	"porchlight/control/controlapi"
	"porchlight/control/kv"
)

// turnStore notes in whose turn its calls are, but for the node's own.
type turnStore struct {
	kv.Store
	mu    sync.Mutex
	turns []string // guarded by mu
}

func (s *turnStore) note(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := kv.TurnOf(ctx); name != kv.TurnOf(kv.First(ctx)) && !slices.Contains(s.turns, name) {
		s.turns = append(s.turns, name)
	}
}

// of is the turns of what do asks for.
func (s *turnStore) of(do func()) []string {
	s.mu.Lock()
	s.turns = nil
	s.mu.Unlock()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

func (s *turnStore) View(ctx context.Context, fn func(kv.Tx) error) error {
	s.note(ctx)
	return s.Store.View(ctx, fn)
}

func (s *turnStore) ViewOf(ctx context.Context, rows kv.Rows, fn func(kv.Tx) error) error {
	s.note(ctx)
	return s.Store.ViewOf(ctx, rows, fn)
}

func (s *turnStore) Update(ctx context.Context, fn func(kv.Tx) error) error {
	s.note(ctx)
	return s.Store.Update(ctx, fn)
}

// Weakness: calls of the store that are nobody's have a turn each, so whoever makes many
// is ahead of everybody else. Checked: those of a computer are in its turns, those of who
// signed in are the account's, and all others the network's.
func TestEveryRequestHasItsTurn(t *testing.T) {
	t.Parallel()
	store := &turnStore{Store: openStore(t, "memory:")}
	r := newRigOn(t, store)
	const network = "network 127.0.0.1"
	redeem := fmt.Sprintf(`{"code":%q,"codeVerifier":%q,"redirectUri":%q}`, strings.Repeat("x", 43), verifier, callback)
	for _, tt := range []struct{ method, path, body, kind string }{
		{"PUT", controlapi.PathApps, `{"apps":[]}`, "computer "},
		{"GET", controlapi.PathPeople, "", "computer "},
		{"GET", controlapi.PathGrants, "", "computer "},
		{"GET", controlapi.PathPasswords, "", "computer "},
		{"POST", controlapi.PathVisits, redeem, "visits "},
	} {
		turns := store.of(func() {
			req := r.browser().request(tt.method, tt.path, strings.NewReader(tt.body))
			req.Header.Set("Authorization", "Bearer "+r.owner.Credential)
			req.Header.Set(controlapi.HeaderProtocol, controlapi.Protocol)
			req.Header.Set("Content-Type", "application/json")
			r.browser().do(req)
		})
		if len(turns) != 2 || turns[1] != tt.kind+r.owner.Computer.ID || turns[0] == network || !strings.Contains(turns[0], " ") {
			t.Errorf("%s %s: the turns are %q", tt.method, tt.path, turns)
		}
	}
	signedIn, stranger := r.signedIn("maya@example.com"), r.browser()
	if turns := store.of(func() { signedIn.get("/account").want(t, http.StatusOK) }); !slices.Equal(turns, []string{network, "account " + r.owner.AccountID}) {
		t.Errorf("an account's page: the turns are %q", turns)
	}
	for _, path := range []string{control.PathInvitation, control.PathSignInLink} {
		turns := store.of(func() { stranger.get(path + "?token=" + strings.Repeat("x", 43)) })
		if !slices.Equal(turns, []string{network}) {
			t.Errorf("%s, opened by a stranger: the turns are %q", path, turns)
		}
	}
}
