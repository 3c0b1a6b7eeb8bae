package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

// The owner has an app told who is there by a token, whose key they print and replace as
// everybody finds it; an Undo keeps the option, and it is exported.
func TestIdentityKey(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	s.publishing("notes", "Notes", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "token: "+strings.Join(r.Header["X-Service-Token"], ", "))
	}))
	address := s.ownerApp("notes").URL
	v := trusting(t, s.dir)
	signedIn := func() string {
		t.Helper()
		page := programs.Got(v.Open(t.Context(), strings.TrimSpace(s.ok("open", "notes", "--print"))))(t)
		return page.Body
	}
	if got := signedIn(); got != "token: " {
		t.Errorf("before anybody asked for one: %s", got)
	}
	s.wants(0, "identity-token      on", "options", "notes", "--identity-token")
	first := strings.TrimPrefix(signedIn(), "token: ")
	if strings.Count(first, ".") != 2 || strings.Contains(first, ",") {
		t.Fatalf("with the option: %q", first)
	}

	type keys struct{ Keys []map[string]string }
	printed := func(args ...string) (set keys) {
		t.Helper()
		programs.Must(t, json.Unmarshal([]byte(s.ok(args...)), &set))
		published, err := v.Open(t.Context(), strings.Replace(address, "notes.", "nobody.", 1)+"/.porchlight/jwks.json")
		programs.Must(t, err)
		var there keys
		programs.Must(t, json.Unmarshal([]byte(published.Body), &there))
		a, b := programs.Got(json.Marshal(set))(t), programs.Got(json.Marshal(there))(t)
		if string(a) != string(b) {
			t.Errorf("%v printed %s, and at the address of no app is %s", args, a, b)
		}
		return set
	}
	one := printed("identity-key")
	if again := printed("identity-key", "--json"); len(one.Keys) != 1 || again.Keys[0]["x"] != one.Keys[0]["x"] || one.Keys[0]["d"] != "" {
		t.Errorf("%v, then %v", one, again)
	}
	if two := printed("identity-key", "--rotate"); len(two.Keys) != 2 || two.Keys[1]["kid"] != one.Keys[0]["kid"] {
		t.Errorf("after a rotation %v", two)
	}
	if last := printed("identity-key", "--rotate", "--now"); len(last.Keys) != 1 || last.Keys[0]["kid"] == one.Keys[0]["kid"] {
		t.Errorf("after a leak %v", last)
	}
	if now := strings.TrimPrefix(signedIn(), "token: "); strings.SplitN(now, ".", 2)[0] == strings.SplitN(first, ".", 2)[0] {
		t.Error("the key of the leak still signs")
	}
	s.wants(commandline.ExitUsage, "--now needs --rotate", "identity-key", "--now")

	s.ok("pause", "notes")
	s.ok("activity", "undo")
	var options agentapi.AppOptions
	if s.json(&options, "options", "notes"); !options.IdentityToken {
		t.Errorf("an Undo has lost the option: %+v", options)
	}
	if all := s.ok("export"); !strings.Contains(all, `"identityToken": true`) || strings.Contains(all, "seed") {
		t.Errorf("exported is %s", all)
	}
}
