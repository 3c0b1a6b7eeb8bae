//go:build linux

package main

import "fmt"

// strangersCall is one of the open tier and above, with what it must be answered.
type strangersCall struct {
	method, path, body string
	want               []int
}

func strangersCalls() []strangersCall {
	publish := func(name string, port int) string {
		return fmt.Sprintf(`{"name":%q,"label":"Other","localPort":%d}`, name, port)
	}
	calls := []strangersCall{
		{"GET", "/status", "", []int{200}},
		{"GET", "/engine/info", "", []int{200}},
		{"GET", "/publish/notes", "", []int{200}},
		{"GET", "/publish/nothing", "", []int{404}},
		{"POST", "/publish", publish("theirs", 7), []int{202}},
		{"DELETE", "/publish/theirs", "", []int{200}},
		{"POST", "/publish", publish("theirs", 8), []int{202}},
		{"POST", "/publish", publish("notes", 7), []int{403}},
		{"POST", "/publish", publish("notes", 9), []int{403}},
		{"POST", "/publish", publish("waiting", 7), []int{403}},
		{"POST", "/publish", publish("waiting", 10), []int{403}},
		{"DELETE", "/publish/notes", "", []int{403}},
		{"DELETE", "/publish/waiting", "", []int{403}},
		{"DELETE", "/publish/nothing", "", []int{403, 404}},
		{"POST", "/engine/register", `{"appId":"org.example.other","pid":1}`, []int{403}},
		{"POST", "/engine/register", `{"appId":"org.example.own","pid":1}`, []int{403}},
		{"POST", "/engine/heartbeat", `{"appId":"org.example.own","pid":1}`, []int{403, 404}},
		{"POST", "/engine/deregister", `{"appId":"org.example.own"}`, []int{200, 403}}, // one of its own, of which there is none,
		{"GET", "/people", "", []int{403}},
		{"POST", "/people/invite", `{"email":"evil@example.net","apps":["Notes"]}`, []int{403}},
		{"POST", "/people/grant", `{"accountId":"x","app":"Notes","granted":true}`, []int{403}},
		{"POST", "/people/revoke", `{"accountId":"x"}`, []int{403}},
	}
	for _, path := range []string{"/owner/state", "/owner/account", "/owner/outbox", "/owner/people", "/owner/settings", "/owner/users"} {
		calls = append(calls, strangersCall{"GET", path, "", []int{403}})
	}
	for _, path := range []string{"/owner/apps/notes/approve", "/owner/apps/theirs/approve", "/owner/apps/notes/revoke", "/owner/open", "/owner/people/invite"} {
		calls = append(calls, strangersCall{"POST", path, "{}", []int{403}})
	}
	return calls
}
