package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

const owner = "maya@example.net"

// compose is a compose file's services.
type compose struct {
	*engine
	t    *testing.T
	file string
	port int
	at   time.Time // when it was typed
}

// up types what a stranger would: load the image, and have it run. prepare is what they
// do before that, in the folder of the file, and gives settings.
func up(t *testing.T, file string, prepare func(c *compose) (env []string)) *compose {
	t.Helper()
	c := &compose{engine: newEngine(t), t: t, port: programs.FreePort(t)}
	c.file = filepath.Join(c.dir, file)
	text := programs.Got(os.ReadFile(filepath.Join("..", "..", "build", "containers", file)))(t)
	programs.Must(t, os.WriteFile(c.file, text, 0o600))
	archives, _ := filepath.Glob(filepath.Join("..", "..", "out", "images", "porchlight-control_*_amd64.tar"))
	if len(archives) != 1 {
		t.Fatalf("%d archives of the image: make images", len(archives))
	}
	c.podman("load", "--input", archives[0])
	c.env = append(c.env, fmt.Sprintf("PORT=%d", c.port))
	if prepare != nil {
		c.env = append(c.env, prepare(c)...)
	}
	t.Cleanup(func() { _, _ = c.try("podman-compose", "--file", c.file, "down", "--volumes", "--timeout", "0") })
	c.at = time.Now()
	programs.Got(c.try("podman-compose", "--file", c.file, "up", "--detach"))(t)
	return c
}

// control types a command into one of the containers.
func (c *compose) control(container string, args ...string) string {
	c.t.Helper()
	var out string
	programs.Eventually(c.t, strings.Join(args, " "), func() (done bool) {
		var err error
		out, err = c.try("podman", append([]string{"exec", container, "/porchlight-control"}, args...)...)
		if err != nil && c.t.Context().Err() == nil {
			c.t.Log(err)
		}
		return err == nil
	})
	return out
}

// visits goes the whole way: an account, a computer that connects, an app, a visitor's page.
func (c *compose) visits(container, authority string) (again func() error) {
	t := c.t
	t.Helper()
	c.control(container, "account", "add", owner)
	if authority == "" {
		authority = filepath.Join(c.dir, "authority.pem")
		programs.Must(t, os.WriteFile(authority, []byte(c.control(container, "ca")+"\n"), 0o600))
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.Header.Get("X-Service-Email"))
	}))
	t.Cleanup(app.Close)
	agent := newComputer(t, "--control", fmt.Sprintf("https://control.porch.localhost:%d", c.port), "--ca", authority)
	maya := visitor.New(programs.Got(rig.Roots(authority))(t))
	t.Cleanup(maya.Close)
	mails := rig.Outbox(func(context.Context) (mails []agentapi.Mail, err error) {
		return mails, json.Unmarshal([]byte(c.control(container, "outbox", "--json")), &mails)
	})
	connect := programs.Begin(t, agent.rig.Command("porchlight", "connect", fmt.Sprintf("https://control.porch.localhost:%d", c.port), "--ca", authority, "--json", "--data", agent.Data))
	said := programs.Got(connect.Says(t.Context(), `(?s)^(\{.*?\n\})`))(t)
	var waiting agentapi.Connecting
	programs.Must(t, json.Unmarshal([]byte(said[1]), &waiting))
	programs.Got(maya.Confirm(t.Context(), waiting.VerificationURLComplete, waiting.UserCode, owner, map[string]string{"name": "cellar", "decision": "allow"}, mails))(t)
	if code := connect.Wait(); code != 0 {
		t.Fatalf("connect: exit %d\n%s", code, connect.Stderr())
	}
	agent.types("publish", "notes", "--label", "Notes", "--port", app.URL[strings.LastIndexByte(app.URL, ':')+1:])
	agent.types("approve", "notes")
	visits := func() error {
		roots, err := rig.Roots(authority, rig.Own(agent.Data))
		if err != nil {
			return err
		}
		visitor := visitor.New(roots)
		defer visitor.Close()
		page, err := visitor.Open(t.Context(), strings.TrimSpace(agent.types("open", "notes", "--print")))
		if err == nil && page.Body != "hello "+owner {
			err = fmt.Errorf("%d %.200s", page.Status, page.Body)
		}
		return err
	}
	programs.Eventually(t, "the first visitor's page", func() bool { return visits() == nil })
	fmt.Printf("%s: %.1f s from podman-compose up to the first visitor's page\n", filepath.Base(c.file), time.Since(c.at).Seconds())
	return visits
}

// One server whose rows are in a file: as build/containers/compose.yaml has it.
func TestComposeOfOneServer(t *testing.T) {
	c := up(t, "compose.yaml", nil)
	c.visits("porchlight-control", "")
	if user := c.podman("inspect", "--format", "{{.Config.User}} {{.HostConfig.ReadonlyRootfs}}", "porchlight-control"); user != "65532:65532 true" {
		t.Errorf("it runs as %s", user)
	}
	began := time.Now()
	c.podman("stop", "porchlight-control")
	if code := c.podman("inspect", "--format", "{{.State.ExitCode}}", "porchlight-control"); code != "0" || time.Since(began) > 40*time.Second {
		t.Errorf("stopped with %s after %s", code, time.Since(began))
	}
	c.podman("start", "porchlight-control")
	if list := c.control("porchlight-control", "account", "list"); !strings.Contains(list, owner) {
		t.Errorf("after a stop it knows %s", list)
	}
	// Typed again where Debian 12's leaves what was just starting anew.
	programs.Eventually(t, "nothing is left after down", func() bool {
		_, err := c.try("podman-compose", "--file", c.file, "down", "--volumes")
		return err == nil && c.podman("ps", "--all", "--quiet")+c.podman("volume", "ls", "--quiet") == ""
	})
}

// The same with PostgreSQL.
func TestComposeWithPostgreSQL(t *testing.T) {
	c := up(t, "postgres.yaml", func(c *compose) []string {
		if _, err := c.try("podman-compose", "--file", c.file, "ps"); err == nil || !strings.Contains(err.Error(), "write POSTGRES_PASSWORD into .env") {
			t.Errorf("without a password it says %v", err)
		}
		return c.postgres()
	})
	c.visits("porchlight-control", "")
}

// Three nodes: one is killed, then another, and visitors go on coming. Browsers find the auth
// host at the first one's address alone, so that one stays.
func TestComposeOfThreeNodes(t *testing.T) {
	var authority string
	c := up(t, "nodes.yaml", func(c *compose) []string {
		authority = c.certificate(filepath.Join(c.dir, "certificate"))
		return c.postgres()
	})
	programs.Eventually(t, "three nodes serve", func() bool {
		nodes, err := c.try("podman", "exec", "porchlight-relay2", "/porchlight-control", "nodes")
		return err == nil && strings.Count(nodes, "serving") == 3
	})
	visits := c.visits("porchlight-relay1", authority)
	for _, relay := range []string{"porchlight-relay3", "porchlight-relay2"} {
		c.podman("kill", relay)
		if on := c.podman("inspect", "--format", "{{.State.Running}}", relay); on != "false" {
			t.Fatalf("%s runs on: %s", relay, on)
		}
		programs.Eventually(t, "a visitor's page without "+relay, func() bool { return visits() == nil })
	}
}

// The agent's image: as nobody, with nothing to write to but its volume.
func TestTheAgentsImage(t *testing.T) {
	e := newEngine(t)
	archives, _ := filepath.Glob(filepath.Join("..", "..", "out", "images", "porchlight_*_amd64.tar"))
	if len(archives) != 1 {
		t.Fatalf("%d archives of the image: make images", len(archives))
	}
	e.podman("load", "--input", archives[0])
	api, https := programs.FreeAddress(t), programs.FreeAddress(t)
	e.podman("run", "--detach", "--name", "agent", "--network", "host", "--read-only", "--volume", "porchlight:/data",
		"localhost/porchlight:latest", "agent", "--local", "--api", api, "--https", https)
	programs.Eventually(t, "its owner is known to it", func() bool {
		said, err := e.try("podman", "exec", "agent", "/porchlight", "settings")
		return err == nil && strings.Contains(said, "Socket by which containers may ask for addresses: none.")
	})
	e.podman("stop", "agent")
	if code := e.podman("inspect", "--format", "{{.State.ExitCode}}", "agent"); code != "0" {
		t.Errorf("stopped with %s", code)
	}
}
