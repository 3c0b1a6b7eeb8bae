package main

import (
	"fmt"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
)

// Weakness: a client could be disconnected by an id alone, which nobody remembers.
// Checked: its name and the address of who connected it do, where they mean one connection;
// where they mean several, all are named and none is chosen.
func TestGrantCalled(t *testing.T) {
	t.Parallel()
	grants := []agentapi.Grant{
		{ID: "one", ClientName: "Pocket Notes", Email: "maya@example.com"},
		{ID: "two", ClientName: "Calendar", Email: "maya@example.com"},
		{ID: "three", ClientName: "Calendar", Email: bob},
		{ID: "four", ClientName: "one", Email: "lena@example.com"}, // as another one's id
		{ID: "five", ClientName: bob, Email: "lena@example.com"},   // as somebody's address
	}
	for word, want := range map[string]string{
		"two":                        "two",
		"pocket notes":               "one",
		"one":                        "one",
		"Calendar":                   `"Calendar" may mean "Calendar" for maya@example.com (two), or "Calendar" for bob@example.com (three). Name it by its ID; see: porchlight grants`,
		"Maya@example.com":           `"Maya@example.com" may mean "Pocket Notes" for maya@example.com (one), or "Calendar" for maya@example.com (two). Name it by its ID; see: porchlight grants`,
		bob:                          `"bob@example.com" may mean "Calendar" for bob@example.com (three), or "bob@example.com" for lena@example.com (five). Name it by its ID; see: porchlight grants`,
		"abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrstuvwxyz", // the agent may know it
		"Diary":                      `"Diary" has no connection here. See: porchlight grants`,
		"":                           `"" has no connection here. See: porchlight grants`,
	} {
		id, err := grantCalled(grants, word)
		if err != nil && id == "" {
			id = err.Error()
		}
		if id != want {
			t.Errorf("%q: %s, want %s", word, id, want)
		}
	}
	var many []agentapi.Grant
	for n := range 30 {
		many = append(many, agentapi.Grant{ID: fmt.Sprint("id", n), ClientName: "Calendar", Email: bob})
	}
	if _, err := grantCalled(many, "Calendar"); !strings.Contains(fmt.Sprint(err), "(id4), or one of 25 more. Name it") {
		t.Errorf("of thirty: %v", err)
	}
}
