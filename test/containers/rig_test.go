// Package containers runs what is promised of containers with Debian's podman: an agent beside
// containers that ask by their labels, and the images and compose files of the server, typed as
// a stranger would.
//
// It needs podman and podman-compose, the images of `make images`, and, to make a normal user's
// computer too, root: it is `make test-containers`, and skipped elsewhere.
package containers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
)

var binaries string

func TestMain(m *testing.M) {
	if os.Getenv("PORCHLIGHT_CONTAINERS") == "" {
		fmt.Println("skipped: these tests need podman; make test-containers runs them")
		return
	}
	if binaries = os.Getenv(readyMade); binaries != "" {
		os.Exit(m.Run())
	}
	os.Setenv("CGO_ENABLED", "0") // an image of a program alone has no libraries
	use := func(dir string) { binaries = dir }
	os.Exit(programs.Main(m, use, "porchlight/agent/cmd/porchlight", "porchlight/test/containers/hello"))
}

// readyMade names in the environment where the programs are that another run of this has made.
const readyMade = "PORCHLIGHT_CONTAINERS_PROGRAMS"

// settings have podman run without systemd, on either kind of control groups, and where root
// may not raise limits.
const settings = `[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
`

// engine is a podman of a test's own, with storage of its own.
type engine struct {
	t   *testing.T
	dir string
	env []string
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	dir := programs.Got(os.MkdirTemp("", "podman-"))(t)
	e := &engine{t: t, dir: dir, env: append(os.Environ(), "CONTAINERS_STORAGE_CONF="+filepath.Join(dir, "storage.conf"), "CONTAINERS_CONF="+filepath.Join(dir, "containers.conf"))}
	conf := fmt.Sprintf("[storage]\ndriver = %q\nrunroot = %q\ngraphroot = %q\n", "vfs", filepath.Join(dir, "run"), filepath.Join(dir, "storage"))
	programs.Must(t,
		os.WriteFile(filepath.Join(dir, "storage.conf"), []byte(conf), 0o600),
		os.WriteFile(filepath.Join(dir, "containers.conf"), []byte(settings), 0o600),
	)
	// A normal user's first podman leaves behind what keeps their namespace, with its output.
	programs.Must(t, e.command("podman", "info", "--format", "json").Run())
	t.Cleanup(func() {
		_, _ = e.try("podman", "rm", "--all", "--force", "--time", "0")
		_, _ = e.try("podman", "volume", "prune", "--force")
		_, _ = e.try("podman", "network", "prune", "--force")
		os.RemoveAll(dir)
	})
	return e
}

func (e *engine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = e.env
	return cmd
}

func (e *engine) try(name string, args ...string) (string, error) {
	cmd := e.command(name, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func (e *engine) podman(args ...string) string {
	e.t.Helper()
	return programs.Got(e.try("podman", args...))(e.t)
}

// image makes an image that is the app alone, with what a Containerfile would say of it.
func (e *engine) image(name string, changes ...string) {
	e.t.Helper()
	args := []string{"import", "--change", `ENTRYPOINT ["/hello"]`}
	for _, change := range changes {
		args = append(args, "--change", change)
	}
	tree := filepath.Join(e.dir, "tree.tar")
	if _, err := os.Stat(tree); err != nil {
		programs.Got(programs.Output(e.command("tar", "--create", "--file", tree, "--directory", binaries, "hello")))(e.t)
	}
	e.podman(append(args, tree, name)...)
}

// serve has the engine answer at a socket, as podman.socket does.
func (e *engine) serve() (socket string) {
	e.t.Helper()
	socket = filepath.Join(e.dir, "podman.sock")
	service := programs.Begin(e.t, e.command("podman", "system", "service", "--time", "0", "unix://"+socket))
	e.t.Cleanup(func() { service.Stop() }) // a normal user's is a child of it, which would stay
	programs.Eventually(e.t, "podman answers", func() bool { _, err := os.Stat(socket); return err == nil })
	return socket
}

// computer is an agent, with what its owner types.
type computer struct {
	t *testing.T
	*rig.Computer
	rig *rig.Rig
}

func newComputer(t *testing.T, flags ...string) *computer {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config")) // where the owner's secret is, for Clients
	r := rig.In(t, binaries)
	r.Env = rig.Environ(filepath.Join(dir, "config"))
	c := programs.Got(r.Computer(t.Context(), filepath.Join(dir, "data"), flags...))(t)
	return &computer{t, c, r}
}

func (c *computer) types(args ...string) string {
	c.t.Helper()
	return programs.Got(c.Output(args...))(c.t)
}

func (c *computer) account() (a agentapi.Account) {
	c.t.Helper()
	programs.Must(c.t, c.Run(&a, "account"))
	return a
}

// app is how one stands, zero where there is none.
func (c *computer) app(name string) agentapi.OwnerApp {
	c.t.Helper()
	_, client, err := c.Clients(c.t.Context())
	programs.Must(c.t, err)
	state := programs.Got(client.State(c.t.Context()))(c.t)
	for _, app := range state.Apps {
		if app.Name == name {
			return app
		}
	}
	return agentapi.OwnerApp{}
}

func (c *computer) waits(name string) agentapi.OwnerApp {
	c.t.Helper()
	programs.Eventually(c.t, name+" waits for the owner", func() bool { return c.app(name).Status == agentapi.StatusPending })
	return c.app(name)
}

// page is what a client of this computer's owner gets at an address, and its status.
func page(ctx context.Context, do func(*http.Request) (*http.Response, error), address string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, string(body), err
}
