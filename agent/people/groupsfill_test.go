package people_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/control"
	"porchlight/test/programs"
)

// comes has bob sign in with the club, where he is in these groups.
func (r *rig) comes(t *testing.T, groups ...string) {
	t.Helper()
	address, kept, err := r.service.Providers.Begin(t.Context(), "club", "", false)
	programs.Must(t, err)
	back := programs.Got(url.Parse(r.club.SignIn(address, map[string]any{"sub": "bob", "email": bobMail, "email_verified": true, "groups": groups})))(t)
	_, prove, err := r.service.Providers.Finish(t.Context(), control.ProviderUse{Name: "club", Kept: kept, Query: back.Query()})
	if err != nil || prove != "" {
		t.Fatalf("bob does not come: %v", err)
	}
}

// opensSoon waits until bob opens what he is to.
func (r *rig) opensSoon(t *testing.T, when string, visits bool, labels ...string) {
	t.Helper()
	r.await(t, func() bool { return slices.Equal(r.listed(t, bobMail).Apps, labels) })
	r.visitsSoon(t, when, visits, labels...)
}

// A provider's group fills one of the owner's where they let it, and no other; who is in it
// there joins and leaves as the provider says when they sign in, which the timeline tells.
func TestProviderFillsGroup(t *testing.T) {
	t.Parallel()
	r, _, group := family(t)
	fill := func(from string) agentapi.GroupChanged {
		t.Helper()
		return programs.Got(r.owner.FillGroup(t.Context(), group, agentapi.FillRequest{From: from}))(t)
	}
	r.comes(t, "team", "board")
	r.opens(t, "in a group that the owner did not let", "Notes")
	if filled := fill("club/team"); filled.Group.From != "club/team" {
		t.Errorf("it is %+v", filled.Group)
	}
	r.opensSoon(t, "let", true, "Notes", "Photos")
	r.comes(t, "board")
	r.opensSoon(t, "out of it there", false, "Notes")
	r.comes(t, "team")
	r.opensSoon(t, "in it again", true, "Notes", "Photos")
	r.end()
	r.serveAndSync(t)
	r.opens(t, "after a restart", "Notes", "Photos")
	var told []string
	for _, l := range programs.Got(r.owner.ActivityPage(t.Context(), agentapi.ActivityQuery{Limit: 50}))(t).Lines {
		if l.By == "club/team" && !l.Owner {
			told = append(told, fmt.Sprint(l.Kind, " ", l.Email, " ", l.Count))
		}
	}
	if !slices.Equal(told, []string{"group-left bob@example.com 0", "group-joined bob@example.com 2", "group-filled  0"}) { // of one hour together
		t.Errorf("told %v", told)
	}
	fill("club/board")
	r.opensSoon(t, "filled by another", false, "Notes")
	r.comes(t, "board")
	r.opensSoon(t, "in that", true, "Notes", "Photos")
	fill("")
	r.opensSoon(t, "filled by none", false, "Notes")
	for _, from := range []string{"club", "/team", "club/", "club/te\nam", "clbu/team"} {
		if _, err := r.owner.FillGroup(t.Context(), group, agentapi.FillRequest{From: from}); agentapi.CodeOf(err) != agentapi.CodeInvalid {
			t.Errorf("%q: %v", from, err)
		}
	}
}

// Weakness: what a provider says gives back what the owner took. Checked: it opens nothing that
// was withdrawn from somebody, brings nobody back whom the owner took out of the group or off the
// list, and takes nobody out whom the owner put in.
func TestOwnerBeatsProvider(t *testing.T) {
	t.Parallel()
	r, id, group := family(t)
	programs.Got(r.owner.FillGroup(t.Context(), group, agentapi.FillRequest{From: "club/team"}))(t)
	// said has bob come, and waits until this computer has heard of it: another group of
	// theirs is filled then.
	marks := 0
	said := func(groups ...string) {
		t.Helper()
		marks++
		mark := fmt.Sprint("mark", marks)
		made := programs.Got(r.owner.AddGroup(t.Context(), agentapi.GroupNamed{Name: mark}))(t)
		programs.Got(r.owner.FillGroup(t.Context(), made.Group.ID, agentapi.FillRequest{From: "club/" + mark}))(t)
		r.comes(t, append(groups, mark)...)
		r.await(t, func() bool {
			return slices.ContainsFunc(programs.Got(r.owner.Groups(t.Context()))(t), func(g agentapi.Group) bool { return g.Name == mark && len(g.Members) == 1 })
		})
	}
	again := func(what string, visits bool, labels ...string) {
		t.Helper()
		said()
		said("team")
		r.opensSoon(t, what, visits, labels...)
	}
	again("in it", true, "Notes", "Photos")
	programs.Got(r.app.SetAccess(t.Context(), agentapi.AccessRequest{AccountID: id, App: "Photos"}))(t)
	r.opensSoon(t, "withdrawn", false, "Notes")
	again("withdrawn, and in it anew", false, "Notes")
	notices := programs.Got(r.owner.State(t.Context()))(t).Notices
	programs.Must(t, r.owner.UndoNotice(t.Context(), notices[len(notices)-1].ID))
	r.opensSoon(t, "given again", true, "Notes", "Photos")

	member := agentapi.MemberRequest{AccountID: id}
	programs.Got(r.owner.LeaveGroup(t.Context(), group, member))(t)
	again("taken out", false, "Notes")
	r.join(t, group, id)
	said()
	r.opensSoon(t, "put in by the owner", true, "Notes", "Photos")

	programs.Got(r.owner.Remove(t.Context(), id))(t)
	programs.Got(r.owner.Invite(t.Context(), agentapi.InviteRequest{Email: bobMail, Apps: []string{"Notes"}}))(t)
	r.accepted(t)
	r.await(t, func() bool { return r.listed(t, bobMail).Status == agentapi.PersonActive })
	again("removed, and invited anew", false, "Notes")
}
