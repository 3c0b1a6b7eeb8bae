package localapi

import (
	"net/http"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// page reads the newest lines, as "kind app*" with a star where it can be undone.
func (r *rig) page(t *testing.T, q agentapi.ActivityQuery) (lines []agentapi.Activity, told string) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	page := programs.Got(r.owner().ActivityPage(t.Context(), q))(t)
	var all []string
	for _, line := range page.Lines {
		what := strings.TrimSpace(line.Kind + " " + line.App)
		if line.Undo {
			what += "*"
		}
		all = append(all, what)
	}
	return page.Lines, strings.Join(all, ", ")
}

// Undo is offered while it restores exactly what was, and never after: the newest
// decision about a thing, whose effect still stands.
func TestUndoOfActivity(t *testing.T) {
	t.Parallel()
	r := start(t)
	owner, ctx := r.owner(), t.Context()
	r.approved(t, "notes", "Notes")
	want := func(want string) []agentapi.Activity {
		t.Helper()
		lines, got := r.page(t, agentapi.ActivityQuery{})
		if got != want {
			t.Fatalf("%s\nwant %s", got, want)
		}
		return lines
	}
	want("approved Notes")
	programs.Got(owner.Pause(ctx, "notes"))(t)
	programs.Got(owner.GoDark(ctx))(t)
	lines := want("dark*, paused Notes*, approved Notes")
	dark, paused := lines[0].ID, lines[1].ID
	for _, id := range []uint64{dark, paused} {
		programs.Must(t, owner.UndoActivity(ctx, id))
	}
	want("resumed Notes, light, dark, paused Notes, approved Notes")
	state, err := owner.State(ctx)
	if err != nil || state.DarkSince != nil || state.Apps[0].Paused {
		t.Errorf("%+v, %v", state, err)
	}
	// Undone once, and only once; and not where the same came about in another way since.
	programs.Got(owner.Pause(ctx, "notes"))(t)
	for _, id := range []uint64{dark, paused, lines[2].ID, 1 << 40} {
		if err := owner.UndoActivity(ctx, id); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("undo of %d: %v", id, err)
		}
	}
	want("paused Notes*, resumed Notes, light, dark, paused Notes, approved Notes")
	// An app that took itself off while it was paused would come back by a resume.
	r.wants(t, request{method: "DELETE", path: "/publish/notes"}, http.StatusOK, "")
	want("paused Notes, resumed Notes, light, dark, paused Notes, approved Notes")
}

// A page is found by group, app, person and words, and read on from its Next.
func TestActivityPages(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.approved(t, "notes", "Notes")
	for _, line := range []agentapi.Activity{
		{Email: "anna@example.com", App: "Notes", Kind: agentapi.ActivityOpened},
		{Email: "anna@example.com", App: "Photos", Kind: agentapi.ActivityOpened},
		{Email: "bob@example.com", App: "Notes", Kind: agentapi.ActivityClient, By: "Pocket"},
		{Kind: agentapi.ActivityServerAway, What: "porch.example"},
	} {
		r.activity.Add(line)
	}
	for want, q := range map[string]agentapi.ActivityQuery{
		"server-away, client Notes, opened Photos, opened Notes, approved Notes": {},
		"client Notes, opened Photos, opened Notes":                              {Group: agentapi.GroupVisits},
		"approved Notes":              {Group: agentapi.GroupDecisions},
		"server-away":                 {Group: agentapi.GroupTrouble},
		"opened Photos":               {App: "Photos"},
		"opened Photos, opened Notes": {Email: "anna@example.com"},
		"opened Notes":                {Email: "anna@example.com", App: "Notes"},
		"client Notes":                {Search: "POCKET bob"},
		"":                            {Search: "pocket anna"},
	} {
		if _, got := r.page(t, q); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
	var all []string
	for q := (agentapi.ActivityQuery{Limit: 2}); ; {
		page := programs.Got(r.owner().ActivityPage(t.Context(), q))(t)
		for _, line := range page.Lines {
			all = append(all, line.Kind)
		}
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if got := strings.Join(all, " "); got != "server-away client opened opened approved" {
		t.Errorf("page by page: %s", got)
	}
	for _, bad := range []string{"limit=0", "limit=1001", "before=0", "before=x", "group=all", "search=" + strings.Repeat("x", 1001)} {
		r.wants(t, r.byOwner("GET", "/owner/activity/page?"+bad, ""), http.StatusBadRequest, "")
	}
}
