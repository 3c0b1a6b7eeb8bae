// Package layout holds the directions imports may take, so that the way of a
// request through the code stays short and one-directional.
package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"porchlight/test/programs"
)

const module = "porchlight"

type pkg struct {
	ImportPath string
	Imports    []string
}

// rule: a package under From may not import one under To, unless it is one of
// Except or imports one of Allow.
type rule struct {
	why    string
	from   string
	to     string
	except []string // importers that may
	allow  []string // imported packages that anybody may
}

var rules = []rule{
	{
		why:  "the control plane runs without an agent or a desktop",
		from: "control", to: "agent",
		// The auth host is served over HTTP/2 by what serves visitors: there is one budget.
		allow: []string{"agent/proxy/http2"},
	},
	{
		why:  "the control plane runs without an agent or a desktop",
		from: "control", to: "desktop",
	},
	{
		why:  "the agent runs without a screen",
		from: "agent", to: "desktop",
	},
	{
		why:  "an agent knows the control plane by its wire only; agent/local puts both into one process",
		from: "agent", to: "control",
		except: []string{"agent/local"},
		allow:  []string{"control/controlapi"},
	},
	{
		why:  "the desktop has the agent wired for it, and knows the control plane not at all",
		from: "desktop", to: "control",
	},
	{
		why:  "words are said below whoever shows them",
		from: "desktop/language", to: "",
		allow: []string{"agent/agentapi", "desktop/language", "internal/words"},
	},
	{
		why:  "what can be done is named below whoever offers or does it",
		from: "desktop/verbs", to: "",
		allow: []string{"agent/agentapi", "desktop/verbs"},
	},
	{
		why:  "a menu is drawn from a picture alone: who asks the agent, and who shows it, stand above",
		from: "desktop/menu", to: "",
		allow: []string{"agent/agentapi", "agent/ownersecret", "desktop/language", "desktop/menu", "desktop/verbs", "internal/words"},
	},
	{
		why:  "what is told is decided by snapshots alone, and menu and notifications know nothing of each other",
		from: "desktop/notes", to: "",
		allow: []string{"agent/agentapi", "assets", "desktop/language", "desktop/notes", "desktop/session", "desktop/verbs", "internal/words"},
	},
	{
		why:  "the tray shows what it is given, and knows neither the agent nor what a click does",
		from: "desktop/tray", to: "",
		allow: []string{"assets", "desktop/language", "desktop/menu", "desktop/session", "desktop/tray", "desktop/verbs", "internal/broadcast"},
	},
	{
		why:  "the window shows what it is given, and knows neither the agent nor what its page may call",
		from: "desktop/page", to: "",
		allow: []string{"assets", "desktop/language", "desktop/page", "desktop/session", "frontend", "internal/words"},
	},
	{
		why:  "an agent is run, or found, without knowing what shows it",
		from: "desktop/runner", to: "desktop",
		allow: []string{"desktop/runner", "desktop/session"},
	},
	{
		why:  "the wire types of the loopback API are a leaf, but for how agent.json is written, its socket is reached and a sentence travels",
		from: "agent/agentapi", to: "",
		allow: []string{"agent/agentapi", "internal/durable", "internal/private", "internal/words"},
	},
	{
		why:  "the wire types of the control plane are a leaf, but for how a sentence travels",
		from: "control/controlapi", to: "",
		allow: []string{"control/controlapi", "internal/words"},
	},
	{
		why:  "who may open what is decided below the proxy and the API",
		from: "agent/access", to: "agent/proxy",
	},
	{
		why:  "the gate judges bytes and heads, and knows neither apps nor people",
		from: "agent/proxy/gate", to: "agent",
		allow: []string{"agent/proxy/ascii", "agent/proxy/gate", "agent/proxy/http1", "agent/proxy/http2", "agent/proxy/limits"},
	},
	{
		why:  "a way in makes requests of bytes, and knows neither apps nor people, nor who counts connections",
		from: "agent/proxy/http1", to: "agent",
		allow: []string{"agent/proxy/ascii", "agent/proxy/http1", "agent/proxy/lazy", "agent/proxy/limits"},
	},
	{
		why:  "a way in makes requests of bytes, and knows neither apps nor people, nor who counts connections",
		from: "agent/proxy/http2", to: "agent",
		allow: []string{"agent/proxy/ascii", "agent/proxy/http2", "agent/proxy/lazy", "agent/proxy/limits"},
	},
	{
		why:  "names and values are judged without knowing whose they are",
		from: "agent/proxy/ascii", to: "",
		allow: []string{"agent/proxy/ascii"},
	},
	{
		why:  "the context of a request is a leaf that both ways in have",
		from: "agent/proxy/lazy", to: "",
		allow: []string{"agent/proxy/lazy"},
	},
	{
		why:  "the limits of visitors' connections are a table that every way in reads",
		from: "agent/proxy/limits", to: "",
		allow: []string{"agent/proxy/limits"},
	},
	{
		why:  "how an app is reached stands below whoever reaches it",
		from: "agent/upstream", to: "agent",
		allow: []string{"agent/agentapi", "agent/procinfo", "agent/upstream"},
	},
	{
		why:  "who is there is signed as it is told: who that is, and may come in, is decided elsewhere",
		from: "agent/identity", to: "agent",
		allow: []string{"agent/store"},
	},
	{
		why:  "certificates of devices are made here, and judged by access",
		from: "agent/devices", to: "agent",
		allow: []string{"agent/access", "agent/agentapi", "agent/store"},
	},
	{
		why:  "what visitors asked is kept below whoever carries and shows it",
		from: "agent/requests", to: "agent",
		allow: []string{"agent/agentapi"},
	},
	{
		why:  "what happened is kept below the rooms where it happens",
		from: "agent/activity", to: "agent",
		allow: []string{"agent/agentapi", "agent/store", "agent/activity"},
	},
	{
		why:  "what listens is read from the system and asked of the listener; which apps there are, it is told",
		from: "agent/listening", to: "agent",
		allow: []string{"agent/agentapi", "agent/procinfo", "agent/upstream"},
	},
	{
		why:  "the engine knows nothing of HTTP",
		from: "agent/engine", to: "agent/localapi",
	},
	{
		why:  "how an app does is asked of the app and told to whoever shows it; which apps there are, the engine says",
		from: "agent/health", to: "agent",
		allow: []string{"agent/agentapi", "agent/engine", "agent/upstream", "agent/health"},
	},
	{
		why:  "whether the computer slept is read from its clocks; what follows, others know",
		from: "agent/sleep", to: "",
	},
	{
		why:  "doctor asks what a stranger could ask, and is told the rest",
		from: "agent/doctor", to: "agent",
		allow: []string{"agent/agentapi", "agent/store", "agent/trust", "agent/doctor"},
	},
	{
		why:  "the update notice asks one address, and touches nothing else",
		from: "agent/update", to: "agent",
		allow: []string{"agent/agentapi", "agent/update"},
	},
	{
		why:  "storage is below everything",
		from: "agent/store", to: "agent",
		allow: []string{"agent/agentapi", "agent/store"},
	},
	{
		why:  "storage is below everything",
		from: "control/kv", to: "control",
		allow: []string{"control/kv"},
	},
	{
		why:  "certificates are kept in rows; who orders them, and for what, is not known there",
		from: "control/certstore", to: "control",
		allow: []string{"control/certstore", "control/kv"},
	},
	{
		why:  "how often agents ask and when they came is counted in memory; who they are and may do, the domain knows",
		from: "control/feed", to: "control",
		allow: []string{"control/feed", "control/controlapi", "control/kv"},
	},
	{
		why:  "news are hints between nodes: what they are about, the domain knows, and where tunnels are, the relay",
		from: "control/news", to: "control",
		allow: []string{"control/news"},
	},
	{
		why:  "it answers what it is asked, by what it is told; which nodes are there, the relay knows",
		from: "control/zone", to: "control",
		allow: []string{"control/zone"},
	},
	{
		why:  "it tells a server what it is told; whose names these are, the domain knows",
		from: "control/dnsupdate", to: "control",
		allow: []string{"control/dnsupdate"},
	},
	{
		why:  "how nodes find each other and carry a visitor; whose it is and what becomes of it, the relay knows",
		from: "control/relay/peers", to: "control",
		allow: []string{"control/relay/peers", "control/controlapi", "control/kv"},
	},
	{
		why:  "an agent's program has one node in it, and no NATS: whoever runs nodes wires their news",
		from: "control", to: "control/news",
		except: []string{"control/news", "control/serve"},
	},
	{
		why:  "what agent and server share is below both",
		from: "internal", to: "",
		allow: []string{"internal"},
	},
	{
		why:  "one agent, wired in one place",
		from: "agent/engine", to: "agent/proxy",
	},
}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./...") {
		for _, imported := range p.Imports {
			for _, r := range rules {
				if r.forbids(p.ImportPath, imported) {
					t.Errorf("%s imports %s: %s", p.ImportPath, imported, r.why)
				}
			}
			if isGUI(imported) && !slices.ContainsFunc(screens, func(room string) bool { return under(p.ImportPath, room) }) {
				t.Errorf("%s imports %s: only %v know a screen", p.ImportPath, imported, screens)
			}
		}
	}
}

// TestCommandsReachNoScreen: the two server programs must run on a machine without
// a C library to load, so nothing they reach may need cgo or a screen.
func TestCommandsReachNoScreen(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"./agent/cmd/porchlight", "./control/cmd/porchlight-control"} {
		for _, p := range list(t, "-deps", command) {
			if isGUI(p.ImportPath) || under(p.ImportPath, "desktop") {
				t.Errorf("%s reaches %s", command, p.ImportPath)
			}
		}
	}
}

func TestRulesCatch(t *testing.T) {
	t.Parallel()
	forbidden := [][2]string{
		{"porchlight/control/web", "porchlight/agent/store"},
		{"porchlight/agent/proxy", "porchlight/control/kv"},
		{"porchlight/agent/agentapi", "porchlight/agent/store"},
		{"porchlight/desktop", "porchlight/control/relay"},
		{"porchlight/control/news", "porchlight/control/kv"},
		{"porchlight/control/wiring", "porchlight/control/news"},
	}
	for _, f := range forbidden {
		if !forbids(f[0], f[1]) {
			t.Errorf("no rule forbids %s importing %s", f[0], f[1])
		}
	}
	allowed := [][2]string{
		{"porchlight/agent/proxy", "porchlight/control/controlapi"},
		{"porchlight/agent/local", "porchlight/control/relay"},
		{"porchlight/desktop", "porchlight/agent/agentapi"},
		{"porchlight/control/web", "porchlight/control"},
		{"porchlight/control/serve", "porchlight/control/news"},
	}
	for _, a := range allowed {
		if forbids(a[0], a[1]) {
			t.Errorf("%s may import %s, but a rule forbids it", a[0], a[1])
		}
	}
}

func forbids(importer, imported string) bool {
	for _, r := range rules {
		if r.forbids(importer, imported) {
			return true
		}
	}
	return false
}

func (r rule) forbids(importer, imported string) bool {
	if !under(importer, r.from) || !under(imported, r.to) {
		return false
	}
	for _, e := range r.except {
		if under(importer, e) {
			return false
		}
	}
	for _, a := range r.allow {
		if under(imported, a) {
			return false
		}
	}
	return true
}

// under says whether path is this module's package dir or below it; an empty
// dir is the whole module.
func under(path, dir string) bool {
	if dir == "" {
		return path == module || strings.HasPrefix(path, module+"/")
	}
	dir = module + "/" + dir
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// screens are the rooms that know a toolkit.
var screens = []string{"desktop/notes", "desktop/page", "desktop/tray"}

func isGUI(path string) bool {
	for _, p := range []string{"github.com/wailsapp/wails", "fyne.io/systray"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Imports", "-tags", "desktop,production,webkit2_41"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		programs.Must(t, err)
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		t.Fatal("go list found no packages")
	}
	return pkgs
}
