package containers

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// beside is an agent in local mode that is told of an engine, and its owner's browser.
type beside struct {
	*engine
	*computer
	host   string // root host, as labels have it
	url    string // with the port
	maya   *visitor.Visitor
	socket string
}

func newBeside(t *testing.T) *beside {
	t.Helper()
	b := &beside{engine: newEngine(t)}
	b.socket = b.serve()
	b.image("localhost/hello:1")
	b.image("localhost/hello:2", "ENV another=image")
	b.computer = newComputer(t, "--local")
	b.types("settings", "--containers", b.socket)
	b.url = b.account().URL
	b.host, _, _ = strings.Cut(strings.TrimPrefix(b.url, "https://"), ":")
	b.maya = visitor.New(programs.Got(rig.Roots(rig.Authority(b.Data)))(t))
	t.Cleanup(b.maya.Close)
	return b
}

// runs starts a container as its owner types it.
func (b *beside) runs(name, image string, port int, labels ...string) {
	args := []string{"run", "--detach", "--name", name, "--publish", fmt.Sprintf("127.0.0.1:%d:8080", port)}
	for _, label := range labels {
		args = append(args, "--label", label)
	}
	b.podman(append(args, image)...)
}

// idOf is the beginning of an image's id.
func (b *beside) idOf(image string) string {
	return strings.TrimPrefix(b.podman("image", "inspect", "--format", "{{.Id}}", image), "sha256:")[:12]
}

func (b *beside) address(app string) string {
	return strings.Replace(b.url, "https://", "https://"+app+".", 1)
}

// opens signs the owner in at an app.
func (b *beside) opens(t *testing.T, app string) (status int, body string) {
	t.Helper()
	page := programs.Got(b.maya.Open(t.Context(), strings.TrimSpace(b.types("open", app, "--print"))))(t)
	return page.Status, page.Body
}

// A container asks by its labels; the owner reads which one of which image, says yes, and comes
// to it. Another image under its name and at its port gets nothing until they say yes again.
func TestAContainerAsksByItsLabels(t *testing.T) {
	b := newBeside(t)
	port := programs.FreePort(t)
	label := "porchlight.name=films." + b.host
	b.runs("films", "localhost/hello:1", port, label, "porchlight.label=Films")
	asks := b.waits("films")
	if want := "container films (localhost/hello:1 " + b.idOf("localhost/hello:1") + ")"; asks.Listener.Program != want || asks.Label != "Films" || asks.LocalPort != port {
		t.Errorf("the owner reads %+v, want %s", asks, want)
	}
	if listens := b.types("listening"); !strings.Contains(listens, "container films") {
		t.Errorf("what listens is told as %s", listens)
	}
	b.types("approve", "films")
	if status, body := b.opens(t, "films"); status != http.StatusOK || !strings.HasPrefix(body, "hello ") {
		t.Errorf("%d %q", status, body)
	}
	b.podman("rm", "--force", "--time", "0", "films")
	b.runs("films", "localhost/hello:2", port)
	if status, body, err := page(t.Context(), b.maya.Do, b.address("films")); err == nil && strings.HasPrefix(body, "hello") {
		t.Errorf("another image has its visitors: %d %q", status, body)
	}
	if asks := b.waits("films"); !strings.Contains(asks.ListenerChange(strings.Clone), "container films (localhost/hello:2 "+b.idOf("localhost/hello:2")+")") {
		t.Errorf("it asks again: %q", asks.ListenerChange(strings.Clone))
	}
	b.podman("rm", "--force", "--time", "0", "films")
	b.runs("films", "localhost/hello:1", port, label, "porchlight.label=Films")
	programs.Eventually(t, "the one that was approved is live again", func() bool { return b.app("films").Status == agentapi.StatusLive })
	if status, body := b.opens(t, "films"); status != http.StatusOK || !strings.HasPrefix(body, "hello ") {
		t.Errorf("it is back: %d %q", status, body)
	}
}

// What an image brings along asks for nothing, and neither does a lie about a port.
func TestContainersThatLie(t *testing.T) {
	b := newBeside(t)
	b.image("localhost/baked:1", "LABEL porchlight.name=bank", "LABEL porchlight.label=Bank")
	b.runs("baked", "localhost/baked:1", programs.FreePort(t))
	b.runs("liar", "localhost/hello:1", programs.FreePort(t), "porchlight.name=liar."+b.host, "porchlight.port=22")
	b.runs("honest", "localhost/hello:1", programs.FreePort(t), "porchlight.name=honest."+b.host)
	b.waits("honest") // they were looked at together
	if said, _ := b.Output("doctor"); !strings.Contains(said, "The container liar has no address. Its label porchlight.port is no port of this computer that it publishes.") || !strings.Contains(said, "The container baked has no address.") {
		t.Errorf("doctor says %s", said)
	}
	for _, name := range []string{"bank", "baked", "liar"} {
		if app := b.app(name); app.Name != "" {
			t.Errorf("%s asks: %+v", name, app)
		}
	}
}

// The owner who names no engine is told, and one who names another is told no more.
func TestASocketThatIsNone(t *testing.T) {
	b := newBeside(t)
	for _, socket := range []string{b.socket + ".old", b.socket} {
		b.types("settings", "--containers", socket)
		programs.Eventually(t, "doctor knows of "+socket, func() bool {
			said, _ := b.Output("doctor")
			return strings.Contains(said, "There is no container engine at "+socket) == (socket != b.socket)
		})
	}
}

// A container in the computer's own network is named, too.
func TestAContainerInTheHostsNetworkIsNamed(t *testing.T) {
	b := newBeside(t)
	b.podman("run", "--detach", "--name", "wide", "--network", "host", "localhost/hello:1")
	programs.Eventually(t, "it is told by name", func() bool { return strings.Contains(b.types("listening"), "container wide") })
}

// Without the engine's socket: a container's own socket in a folder that it shares.
func TestAContainerWithoutTheSocket(t *testing.T) {
	b := newBeside(t)
	b.types("settings", "--containers", "")
	shared := programs.Got(os.MkdirTemp("", "shared-"))(t)
	t.Cleanup(func() { os.RemoveAll(shared) })
	b.podman("run", "--detach", "--name", "films", "--network", "none", "--volume", shared+":/run/films", "localhost/hello:1", "/run/films/app.sock")
	b.types("publish", "films", "--label", "Films", "--port", "8096")
	b.types("approve", "films")
	b.types("options", "films", "--upstream", "unix:"+filepath.Join(shared, "app.sock"))
	programs.Eventually(t, "it listens", func() bool { _, err := os.Stat(filepath.Join(shared, "app.sock")); return err == nil })
	if status, body := b.opens(t, "films"); status != http.StatusOK || !strings.HasPrefix(body, "hello ") {
		t.Errorf("%d %q", status, body)
	}
}
