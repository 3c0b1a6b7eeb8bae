package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// The list names what listens, says what is published, and has these fields and no
// other for what is offered.
func TestListening(t *testing.T) {
	t.Parallel()
	s := startAgent(t)
	port := plant(t, http.NotFoundHandler(), (*httptest.Server).Start)
	find := func() string {
		t.Helper()
		var all []json.RawMessage
		programs.Must(t, json.Unmarshal([]byte(s.ok("listening", "--json")), &all))
		for _, raw := range all {
			var one struct{ Port int }
			if err := json.Unmarshal(raw, &one); err == nil && strconv.Itoa(one.Port) == port {
				return strings.Join(strings.Fields(string(raw)), "")
			}
		}
		t.Fatalf("port %s is not in %s", port, all)
		return ""
	}
	who := programs.Got(user.Current())(t)
	var got string
	// On a busy machine the time of one list is over before every program is found.
	programs.Eventually(t, "the program is named", func() bool { got = find(); return strings.Contains(got, `"porchlight.test"`) })
	for _, want := range []string{`{"port":` + port + `,"program":"porchlight.test","user":"` + who.Username + `",`, `"published":false`, `"network":false`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s in it", got, want)
		}
	}
	s.ok("publish", "shop", "--label", "Shop", "--port", port)
	s.ok("approve", "shop")
	if got := find(); !strings.Contains(got, `"published":true`) {
		t.Errorf("published: %s", got)
	}
	table := s.ok("listening")
	if !strings.HasPrefix(table, "PORT ") || !strings.Contains(table, port+" ") {
		t.Errorf("table: %s", table)
	}
}
