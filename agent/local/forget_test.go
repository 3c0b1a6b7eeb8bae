package local

import (
	"testing"

	"porchlight/control/controlapi"
	"porchlight/test/programs"
)

// TestForgetPeople: a computer that is on its own again starts with its owner
// alone, under the same account id, and with no remote client, not even one the
// owner let in.
func TestForgetPeople(t *testing.T) {
	t.Parallel()
	dir, https := t.TempDir(), programs.FreeAddress(t)
	cfg := configOf(dir)
	cfg.HTTPS = https
	r := start(t, cfg)
	owner := r.account().AccountID
	programs.Eventually(t, "bob is invited to an app", func() bool { // which the agent's own first report takes away
		apps := controlapi.Apps{Apps: []controlapi.App{{ID: "a1", Name: "notes", Label: "Notes", Live: true}}}
		programs.Must(t, r.controlPlane.Service.Agents.PutApps(t.Context(), r.controlPlane.computerID, apps))
		_, err := r.controlPlane.Service.People.Invite(t.Context(), r.controlPlane.computerID, controlapi.Invite{Email: "bob@example.com", Apps: []string{"a1"}})
		return err == nil
	})
	r.allowClient(t, r.account().Email)
	programs.Must(t, r.end())
	cfg = configOf(dir)
	cfg.HTTPS, cfg.ForgetPeople = https, true
	r = start(t, cfg)
	defer r.end()
	people, err := r.controlPlane.Service.People.List(t.Context(), r.controlPlane.computerID)
	if err != nil || len(people) != 2 {
		t.Fatal(people, err)
	}
	for _, p := range people {
		want := controlapi.PersonRemoved
		if p.AccountID == owner {
			want = controlapi.PersonActive
		}
		if p.Status != want {
			t.Errorf("%s is %s", p.Email, p.Status)
		}
	}
	if grants, err := r.controlPlane.Service.Grants.OfComputer(t.Context(), r.controlPlane.computerID); err != nil || len(grants) > 0 {
		t.Errorf("remote clients are %+v, %v", grants, err)
	}
}
