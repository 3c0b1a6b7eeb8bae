//go:build rig

package desktop

import (
	"os"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

// An own domain, by mouse from the tray in a real panel: the line of the app's menu opens the
// window at the app, and there the domain is added and its records can be copied.
func TestOwnDomainFromTheTray(t *testing.T) {
	t.Parallel()
	s := newSession(t, desk{})
	p := s.launchDriven()
	control := s.startPlane()
	authority := programs.Got(os.ReadFile(rig.Authority(control.Data)))(t)
	nobody := "https://" + programs.FreeAddress(t) + "/directory" // who is asked only once the domain is found
	control.confirm(p.program, "cellar", programs.Got(p.ownerTier().Connect(t.Context(), agentapi.ConnectRequest{URL: control.AuthURL, CA: string(authority), ACMEDirectory: nobody}))(t))
	p.approved("notes", "Notes", webApp(t, "notes"))
	p.clickTray("Notes", "Own domain…")
	p.pageThere()
	p.named("h1", "Notes")
	p.pressButton("Own domain…")
	p.write("Which domain?", "notes.maya.example")
	p.shot("own-domain-form")
	p.pressButton("Add")
	p.named("button", "Check now: notes.maya.example")
	p.see(`[aria-label="Record CNAME"]`)
	p.shot("own-domain")
	var domains []struct{ Name, App, State string }
	p.ask(&domains, "domain", "list")
	if len(domains) != 1 || domains[0].Name != "notes.maya.example" || domains[0].App != "notes" || domains[0].State != "waiting" {
		t.Errorf("the domains: %+v", domains)
	}
}
