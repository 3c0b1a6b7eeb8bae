package people_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

func pid() string { return strconv.Itoa(os.Getpid()) }

// The promises of docs/interface.md about people as a program sees them over HTTP, with a
// real control plane behind. What visitors see of it is shown where there are visitors.

func TestM1_People(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes", "Wiki")
	id := r.invited(t, false, "Wiki")
	got := r.call(t, "GET", "/people", "", r.capability(t))
	owner := r.member(t, ownerMail)
	want := fmt.Sprintf("map[members:[map[accountId:%s apps:[Notes Wiki] email:%s role:owner status:active] "+
		"map[accountId:%s apps:[Wiki] email:%s role:member status:pending]] name:maya publishedApps:[Notes Wiki]]",
		owner.AccountID, ownerMail, id, bobMail)
	if got.status != http.StatusOK || fmt.Sprint(got.body) != want {
		t.Errorf("HTTP %d %v\nwant %s", got.status, got.body, want)
	}
}

func TestM2_NoCapability(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	right := r.capability(t)
	for path, body := range map[string]string{
		"/people":        "",
		"/people/invite": `{"email":"bob@example.com","apps":["Notes"]}`,
		"/people/grant":  `{"accountId":"x","app":"Notes","granted":true}`,
		"/people/revoke": `{"accountId":"x"}`,
	} {
		method := "POST"
		if body == "" {
			method = "GET"
		}
		wrong := "A" + right[1:]
		if wrong == right {
			wrong = "B" + right[1:]
		}
		for _, given := range [][]string{nil, {""}, {wrong}, {right[1:]}, {right + "A"}, {wrong, right}, {right, right}, {right + "," + right}} {
			r.call(t, method, path, body, given...).refused(t, http.StatusForbidden, "Register first")
		}
	}
	if r.mails(t) != 0 || len(r.member(t, bobMail).Email) != 0 {
		t.Error("a refused request did something")
	}
}

func TestM3_Unreachable(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	capability := r.capability(t)
	r.down()
	r.call(t, "GET", "/people", "", capability).refused(t, http.StatusServiceUnavailable, "cannot be reached")
	r.call(t, "POST", "/people/invite", `{"email":"bob@example.com","apps":["Notes"]}`, capability).refused(t, http.StatusServiceUnavailable, "cannot be reached")
	r.call(t, "POST", "/people/grant", `{"accountId":"x","app":"Notes","granted":true}`, capability).refused(t, http.StatusServiceUnavailable, "cannot be reached")
	r.up()
	r.await(t, func() bool { _, err := r.app.People(t.Context()); return err == nil })
}

func TestM4_Invite(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes", "Wiki")
	got := r.call(t, "POST", "/people/invite", `{"email":"bob@example.com","apps":["Wiki","Notes","Wiki"],"future":1}`, r.capability(t))
	want := "map[email:bob@example.com status:pending url:https://wiki.maya.localhost:8443]"
	if got.status != http.StatusOK || fmt.Sprint(got.body) != want {
		t.Errorf("HTTP %d %v, want %s", got.status, got.body, want)
	}
	if bob := r.listed(t, bobMail); bob.Status != "pending" || !slices.Equal(bob.Apps, []string{"Notes", "Wiki"}) {
		t.Errorf("the grant is %+v", bob)
	}
	if n := r.mails(t); n != 1 {
		t.Errorf("%d mails", n)
	}
	// Somebody who accepted is invited to more: the answer is the same.
	r.accepted(t)
	r.publish(t, "todo", "Todo")
	got = r.call(t, "POST", "/people/invite", `{"email":"Bob@Example.com","apps":["Todo"]}`, r.capability(t))
	if got.status != http.StatusOK || got.body["status"] != "pending" {
		t.Errorf("HTTP %d %v", got.status, got.body)
	}
	if bob := r.listed(t, bobMail); bob.Status != "active" || !slices.Equal(bob.Apps, []string{"Notes", "Todo", "Wiki"}) {
		t.Errorf("invited to more: %+v", bob)
	}
}

func TestM5_NoAddress(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	capability := r.capability(t)
	for _, email := range []string{"", "bob", "@", "bob@", "@example.com", "bob example.com", "bob@exa mple.com", "a@b@c", "bob@example.com\\nBcc: x@y.z"} {
		r.call(t, "POST", "/people/invite", `{"email":"`+email+`","apps":["Notes"]}`, capability).refused(t, http.StatusBadRequest, "")
	}
	// The owner cannot be invited to their own computer.
	r.call(t, "POST", "/people/invite", `{"email":"`+ownerMail+`","apps":["Notes"]}`, capability).refused(t, http.StatusBadRequest, "owner")
	if n := r.mails(t); n != 0 {
		t.Errorf("%d mails", n)
	}
}

func TestM6_UnknownLabel(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes", "Wiki")
	r.publish(t, "plans", " Plans ")
	programs.Got(r.app.Unpublish(t.Context(), "wiki"))(t)
	programs.Got(r.app.Publish(t.Context(), agentapi.PublishRequest{Name: "todo", Label: "Todo", LocalPort: 8000}))(t)
	capability := r.capability(t)
	for apps, says := range map[string]string{
		`[]`:                                    "at least one",
		`["Diary"]`:                             "Diary",
		`["Notes","Diary"]`:                     "Diary",
		`["notes"]`:                             "notes", // a name is not a label
		`["Notes","Wiki"]`:                      "stopped",
		`["Todo"]`:                              "Todo", // not approved
		`[""]`:                                  "",
		`["Notes "]`:                            "Notes ", // neither as published nor as shown
		`["Notes","\tPlans"]`:                   "Plans",
		`["Notes",null]`:                        "list of texts",
		`["Notes",7]`:                           "list of texts",
		`"Notes"`:                               "list of texts",
		`{"0":"Notes"}`:                         "list of texts",
		`null`:                                  "missing",
		`["` + strings.Repeat("x", 5000) + `"]`: "no app",
	} {
		r.call(t, "POST", "/people/invite", `{"email":"bob@example.com","apps":`+apps+`}`, capability).refused(t, http.StatusBadRequest, says)
	}
	// What is wrong with the address is told at once, too.
	for email, wrong := range map[string]bool{"bob": true, "bob@example": true, "Bob <bob@example.com>": true, " bob@example.com ": false, "b+c@ex-ample.co.uk": false} {
		got := r.call(t, "POST", "/people/invite", fmt.Sprintf(`{"email":%q,"apps":["Diary"]}`, email), capability)
		got.refused(t, http.StatusBadRequest, "Diary")
		if told := strings.Contains(fmt.Sprint(got.body["error"]), "e-mail address"); told != wrong {
			t.Errorf("%q: %v", email, got.body)
		}
	}
	if r.mails(t) != 0 || r.member(t, bobMail).Email != "" {
		t.Error("a refused invitation wrote or sent something")
	}
	for _, spelled := range []string{" Plans ", "Plans"} {
		if got := r.call(t, "POST", "/people/invite", fmt.Sprintf(`{"email":"bob@example.com","apps":[%q]}`, spelled), capability); got.status != http.StatusOK {
			t.Errorf("%q: HTTP %d %v", spelled, got.status, got.body)
		}
	}
}

func TestM7_Budget(t *testing.T) {
	t.Parallel()
	r := start(t, "Notes")
	capability := r.capability(t)
	const body = `{"email":"bob@example.com","apps":["Notes"]}`
	got := r.call(t, "POST", "/people/invite", body, capability)
	for n := 1; got.status == http.StatusOK && n < 30; n++ {
		got = r.call(t, "POST", "/people/invite", body, capability)
	}
	got.refused(t, http.StatusTooManyRequests, "")
	if after, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || after < 1 {
		t.Errorf("Retry-After: %q", got.header.Get("Retry-After"))
	}
}

func TestM9_Grant(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes")
	r.publish(t, "wiki", "Wiki")
	capability := r.capability(t)
	grant := func(app string, granted bool) answer {
		return r.call(t, "POST", "/people/grant", fmt.Sprintf(`{"accountId":%q,"app":%q,"granted":%v}`, id, app, granted), capability)
	}
	for _, step := range []struct {
		app     string
		granted bool
		want    []string
	}{
		{"Wiki", true, []string{"Notes", "Wiki"}},
		{"Wiki", true, []string{"Notes", "Wiki"}},
		{"Notes", false, []string{"Wiki"}},
		{"Notes", false, []string{"Wiki"}},
		{"Notes", true, []string{"Notes", "Wiki"}},
		{"Wiki", false, []string{"Notes"}},
		{"Notes", false, []string{}},
	} {
		got := grant(step.app, step.granted)
		person, _ := got.body["person"].(map[string]any)
		if got.status != http.StatusOK || got.body["ok"] != true || fmt.Sprint(person["apps"]) != fmt.Sprint(step.want) || person["status"] != "active" {
			t.Fatalf("%s %v: HTTP %d %v, want %v", step.app, step.granted, got.status, got.body, step.want)
		}
		if bob := r.listed(t, bobMail); !slices.Equal(bob.Apps, step.want) || bob.Status != "active" {
			t.Fatalf("%s %v: listed as %+v", step.app, step.granted, bob)
		}
	}
	grant("Diary", true).refused(t, http.StatusBadRequest, "Diary")
	grant("Diary", false).refused(t, http.StatusBadRequest, "Diary")
	r.refuses(t, "/people/grant", map[string]string{
		`{"accountId":"nobody","app":"Notes","granted":true}`:                                    "not on the list",
		`{"accountId":"nobody","app":"Notes","granted":false}`:                                   "not on the list",
		`{"accountId":"` + r.member(t, ownerMail).AccountID + `","app":"Notes","granted":false}`: "owner",
		`{"accountId":"` + r.member(t, ownerMail).AccountID + `","app":"Notes","granted":true}`:  "owner",
		`{"accountId":"` + bobMail + `","app":"Notes","granted":false}`:                          "not on the list",
		`{"accountId":"` + id + `","app":"Notes","granted":"true"}`:                              "true or false",
		`{"accountId":"` + id + `","app":"Notes"}`:                                               `"granted" is missing`,
		`{"accountId":"` + id + `","app":7,"granted":true}`:                                      `"app" must be`,
		`{"app":"Notes","granted":true}`:                                                         `"accountId" is missing`,
	})
	// Any label the person has can be taken away, a stopped app's too.
	grant("Wiki", true)
	programs.Got(r.app.Unpublish(t.Context(), "wiki"))(t)
	grant("Wiki", true).refused(t, http.StatusBadRequest, "stopped")
	if got := grant("Wiki", false); got.status != http.StatusOK {
		t.Errorf("withdrawing a stopped app: HTTP %d %v", got.status, got.body)
	}
	if bob := r.listed(t, bobMail); len(bob.Apps) != 0 {
		t.Errorf("listed as %+v", bob)
	}
}

func TestM14_AccountIDs(t *testing.T) {
	t.Parallel()
	r, id := startWithBob(t, "Notes")
	if _, elsewhere := startWithBob(t, "Notes"); strings.Contains(id, "@") || elsewhere == id || len(id) < 16 {
		t.Errorf("the account id %q is not opaque, %q at another server", id, elsewhere)
	}
	r.invited(t, false, "Notes")
	if again := r.listed(t, bobMail).AccountID; again != id {
		t.Errorf("the account id became %q", again)
	}
	r.refuses(t, "/people/revoke", map[string]string{
		`{"accountId":"` + bobMail + `"}`:                          "not on the list",
		`{"accountId":"nobody"}`:                                   "not on the list",
		`{"accountId":"` + r.member(t, ownerMail).AccountID + `"}`: "owner",
		`{"accountId":7}`:                                          `"accountId" must be`,
	})
}
