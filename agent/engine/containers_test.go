package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

var (
	web     = agentapi.Container{Engine: "/run/docker.sock", Name: "web", Image: "nginx:1", ImageID: "aa"}
	proxied = agentapi.Listener{User: "root", UserID: "0"} // docker-proxy, which is not ours to see
)

// docker is a host with containers: behind says which is at each port, where its engine answers.
type docker struct {
	*host
	behind map[int]agentapi.Container
	away   bool
}

func openDocker(t *testing.T) *docker {
	d := &docker{host: openHost(t), behind: map[int]agentapi.Container{8000: web}}
	d.listens = func(int) (agentapi.Listener, bool) { return proxied, true }
	d.cfg.Container = func(at upstream.Target, l *agentapi.Listener, _ bool) (*agentapi.Container, bool) {
		if d.away {
			return nil, true
		}
		is := d.behind[at.Port]
		if is != (agentapi.Container{}) {
			l.Program = is.String()
		}
		return &is, false
	}
	return d
}

func (d *docker) asks(t *testing.T, c agentapi.Container, name string, port int) (agentapi.Status, error) {
	t.Helper()
	pub, err := d.apps.Publish(t.Context(), Caller{Container: &c}, agentapi.PublishRequest{Name: name, Label: name, LocalPort: port})
	return pub.Status, err
}

func (d *docker) shown(t *testing.T) agentapi.OwnerApp {
	t.Helper()
	all := d.apps.OwnerApps(nil)
	if len(all) != 1 {
		t.Fatalf("%d apps", len(all))
	}
	return all[0]
}

func (d *docker) welcome() bool {
	return d.apps.Welcomes("notes", upstream.Target{Port: 8000}, agentapi.Listener{})
}

// Weakness: the program at every container's port is the same, docker-proxy of root, so an
// approval for its user would be one for whatever container comes to the port. It is for the
// container: name, engine, image and port; a change of any asks anew, and closes until then.
func TestAnApprovalIsForOneContainer(t *testing.T) {
	t.Parallel()
	changed := func(change func(*agentapi.Container)) agentapi.Container { c := web; change(&c); return c }
	for what, tt := range map[string]struct {
		is   agentapi.Container
		port int
		asks bool
	}{
		"the same":              {web, 8000, false},
		"its image named anew":  {changed(func(c *agentapi.Container) { c.Image = "nginx:2" }), 8000, false},
		"another image":         {changed(func(c *agentapi.Container) { c.ImageID = "bb" }), 8000, true},
		"another container":     {changed(func(c *agentapi.Container) { c.Name = "mallet" }), 8000, true},
		"another engine":        {changed(func(c *agentapi.Container) { c.Engine = "/tmp/e.sock" }), 8000, true},
		"another port":          {web, 8001, true},
		"no container any more": {agentapi.Container{}, 8000, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := openDocker(t)
			if status, err := d.asks(t, web, "notes", 8000); status != agentapi.StatusPending || err != nil {
				t.Fatalf("%s, %v", status, err)
			}
			if l := d.shown(t).Listener; l.Program != "container web (nginx:1 aa)" {
				t.Errorf("the request shows %+v", l)
			}
			programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
			if !d.welcome() {
				t.Fatal("the container that was approved gets no visitors")
			}
			delete(d.behind, 8000)
			d.behind[tt.port] = tt.is
			if welcome := d.welcome(); welcome == tt.asks {
				t.Errorf("visitors are let to it: %v", welcome)
			}
			if tt.is != (agentapi.Container{}) {
				if status, err := d.asks(t, tt.is, "notes", tt.port); (status == agentapi.StatusPending) != tt.asks || err != nil {
					t.Errorf("%s, %v", status, err)
				}
			}
			if said := d.shown(t).ListenerChange(strings.Clone); tt.asks && tt.port == 8000 && !strings.HasPrefix(said, "notes was approved for container web (nginx:1 aa); now ") {
				t.Errorf("the owner reads %q", said)
			}
			if app := d.shown(t); tt.asks != (app.Status == agentapi.StatusPending) || tt.asks && len(d.gone) == 0 {
				t.Errorf("%+v, closed %v", app, d.gone)
			}
			d.behind = map[int]agentapi.Container{8000: web}
			if status, err := d.asks(t, web, "notes", 8000); status != agentapi.StatusLive || err != nil {
				t.Errorf("the one that was approved is back: %s, %v", status, err)
			}
			d.close()
			d.open()
			if holder, port, _ := d.apps.Holder("notes"); holder == nil || !holder.Same(web) || port != 8000 {
				t.Errorf("after a start it was approved for %v at %d", holder, port)
			}
		})
	}
}

// Weakness: an engine that hangs, or is not asked any more, would have had the last answer
// count for ever. Nobody is let to a container that cannot be told, and no approval is lost.
func TestAContainerThatCannotBeToldGetsNoVisitors(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	_, err := d.asks(t, web, "notes", 8000)
	programs.Must(t, err, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
	d.away = true
	if d.welcome() {
		t.Error("a visitor comes to a container that cannot be told")
	}
	if app := d.shown(t); app.Status != agentapi.StatusLive {
		t.Errorf("the approval: %+v", app)
	}
	if d.away = false; !d.welcome() {
		t.Error("the engine is back, and visitors are not")
	}
}

// What another container listens than asked, when the owner says yes, is not approved.
func TestApprovingLooksWhichContainerItIs(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	_, err := d.asks(t, web, "notes", 8000)
	programs.Must(t, err)
	for what, is := range map[string]agentapi.Container{"another": {Engine: web.Engine, Name: "mallet", Image: "evil", ImageID: "ee"}, "none": {}} {
		d.behind[8000] = is
		if _, err := d.apps.Approve(t.Context(), "notes", agentapi.Approval{}); agentapi.CodeOf(err) != agentapi.CodeConflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	d.behind[8000] = web
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
}

// Weakness: while the engine is away nobody knows which container is at a port that a program
// asked for; a yes would be for whichever is there later. There is none until the engine answers.
func TestNoYesToAContainerWithoutAName(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	programs.Must(t, second(d.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "notes", Label: "Notes", LocalPort: 8000})))
	d.away = true
	if _, err := d.apps.Approve(t.Context(), "notes", agentapi.Approval{}); agentapi.CodeOf(err) != agentapi.CodeUnavailable {
		t.Errorf("the engine is away: %v", err)
	}
	d.away = false
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
}

// Weakness: while an engine hangs, a yes waited for it again and again, up to 13 seconds. It waits
// as long as for any program, and what the engine said of the same socket before counts.
func TestApprovingWaitsForNoEngine(t *testing.T) {
	t.Parallel()
	for said, want := range map[bool]agentapi.Code{false: agentapi.CodeUnavailable, true: ""} {
		d := openDocker(t)
		hangs, asked := make(chan struct{}), make(chan struct{}, 9)
		tells := d.cfg.Container
		d.cfg.Container = func(at upstream.Target, l *agentapi.Listener, fresh bool) (*agentapi.Container, bool) {
			if fresh {
				asked <- struct{}{}
				<-hangs
			}
			return tells(at, l, false)
		}
		d.apps.lookFor = time.Millisecond
		_, err := d.asks(t, web, "notes", 8000)
		programs.Must(t, err)
		d.away = !said
		_, err = d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: new(agentapi.SeenOf(d.shown(t)))})
		if <-asked; agentapi.CodeOf(err) != want {
			t.Errorf("the engine hangs, said which it is: %v: %v", said, err)
		}
		close(hangs)
	}
}

// Weakness: the owner looks, the image of that name becomes another, and the container is made
// anew; what they say yes to was never shown. The beginning of the image's id is part of it.
func TestAnImageThatWasNotSeenIsNotApproved(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	_, err := d.asks(t, web, "notes", 8000)
	programs.Must(t, err)
	seen := agentapi.SeenOf(d.shown(t))
	other := web
	other.ImageID = "bb"
	d.behind[8000] = other
	_, err = d.asks(t, other, "notes", 8000)
	programs.Must(t, err)
	if _, err := d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: &seen}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("it was not seen: %v", err)
	}
	programs.Must(t, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: new(agentapi.SeenOf(d.shown(t)))})))
}

// A name that was approved for a program is no container's, and what was approved for a
// container is no program's: neither asks in the other's place without the owner.
func TestContainersAndProgramsHaveTheirOwnNames(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	d.behind = nil
	d.live(t, "notes", "Notes", 8000)
	if _, err := d.asks(t, web, "notes", 8001); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("a container takes a program's name: %v", err)
	}
	if app := d.shown(t); app.Status != agentapi.StatusLive || app.LocalPort != 8000 {
		t.Errorf("%+v", app)
	}
	d = openDocker(t)
	_, err := d.asks(t, web, "notes", 8000)
	programs.Must(t, err, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})))
	pub, err := d.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "notes", Label: "notes", LocalPort: 8001})
	if pub.Status != agentapi.StatusPending || err != nil {
		t.Errorf("a program takes a container's name: %+v, %v", pub, err)
	}
}

// Weakness: a program asks for a container's port, the owner is shown the container and says
// yes, and the approval was for whatever container comes to that port. It is for the one that
// was shown, as is what the owner shares; the program's next request asks nothing anew.
func TestAContainersPortIsApprovedForItWhoeverAsked(t *testing.T) {
	t.Parallel()
	asks := agentapi.PublishRequest{Name: "notes", Label: "notes", LocalPort: 8000}
	for what, approve := range map[string]func(d *docker) error{
		"asked for": func(d *docker) error {
			_, err := d.apps.Publish(t.Context(), Caller{}, asks)
			return errors.Join(err, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{Seen: new(agentapi.SeenOf(d.shown(t)))})))
		},
		"shared": func(d *docker) error {
			seen := agentapi.Seen{Label: "notes", LocalPort: 8000, Program: new(web.String()), User: new("root")}
			return second(d.apps.Share(t.Context(), "notes", 1, agentapi.Share{Seen: seen, Others: true, Keep: true}))
		},
	} {
		d := openDocker(t)
		programs.Must(t, approve(d))
		if !d.welcome() {
			t.Fatalf("%s: the container that was approved gets no visitors", what)
		}
		d.behind[8000] = agentapi.Container{Engine: web.Engine, Name: "mallet", Image: "evil", ImageID: "ee"}
		if d.welcome() || d.shown(t).Status != agentapi.StatusPending {
			t.Errorf("%s: another container is in its place: %+v", what, d.shown(t))
		}
		d.behind[8000] = web
		if pub, err := d.apps.Publish(t.Context(), Caller{}, asks); pub.Status != agentapi.StatusLive || err != nil || !d.welcome() {
			t.Errorf("%s: it is back: %+v, %v", what, pub, err)
		}
	}
}

// A request ends with its container, and what is approved does not.
func TestARequestEndsWithItsContainer(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	_, err := d.asks(t, web, "notes", 8000)
	other := web
	other.Name = "other"
	programs.Must(t, err, d.apps.ContainerGone(t.Context(), "notes", other))
	if app := d.shown(t); app.Status != agentapi.StatusPending {
		t.Errorf("another one is gone: %+v", app)
	}
	programs.Must(t, d.apps.ContainerGone(t.Context(), "notes", web))
	if all := d.apps.OwnerApps(nil); len(all) != 0 {
		t.Errorf("it is gone: %+v", all)
	}
	_, err = d.asks(t, web, "notes", 8000)
	programs.Must(t, err, second(d.apps.Approve(t.Context(), "notes", agentapi.Approval{})), d.apps.ContainerGone(t.Context(), "notes", web))
	if app := d.shown(t); app.Status != agentapi.StatusLive {
		t.Errorf("an approved one is gone: %+v", app)
	}
}

// Containers leave room for programs: at most maxPendingOfContainers wait.
func TestContainersLeaveRoomInTheQueue(t *testing.T) {
	t.Parallel()
	d := openDocker(t)
	waits := 0
	for i := range maxPendingOfContainers + 5 {
		_, err := d.asks(t, web, fmt.Sprintf("n-%d", i), 8000)
		if err == nil {
			waits++
		} else if agentapi.CodeOf(err) != agentapi.CodeTooMany || !strings.Contains(err.Error(), "containers") {
			t.Fatal(err)
		}
	}
	if waits != maxPendingOfContainers {
		t.Errorf("%d wait", waits)
	}
	programs.Must(t, second(d.apps.Publish(t.Context(), Caller{}, agentapi.PublishRequest{Name: "own", Label: "Own", LocalPort: 8001})))
}
