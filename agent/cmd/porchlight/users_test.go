package main

import (
	"net/http"
	"os"
	"os/user"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
)

// TestUsersAndNotices: who else of this computer may register, and what programs
// changed, as a person types it and as a program reads it.
func TestUsersAndNotices(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.NotFoundHandler())
	var users []agentapi.LocalUser
	s.json(&users, "users")
	if users == nil || len(users) != 0 {
		t.Errorf("users %+v", users)
	}
	if other, err := user.Lookup("nobody"); err == nil && os.Geteuid() == 0 {
		var one agentapi.LocalUser
		s.json(&one, "users", "allow", "nobody")
		if one.ID != other.Uid || one.Name != "nobody" || one.Standing != agentapi.UserAllowed {
			t.Errorf("allowed %+v", one)
		}
		if out := s.ok("users"); !strings.Contains(out, "nobody") || !strings.Contains(out, "allowed") {
			t.Errorf("users: %s", out)
		}
		s.wants(0, "nobody", "users", "deny", other.Uid)
		s.ok("users", "forget", "nobody")
		s.json(&users, "users", "list")
		if len(users) != 0 {
			t.Errorf("forgotten, and still %+v", users)
		}
	}

	s.wants(0, "Nothing", "notices")
	s.ok("notices", "seen")
}
