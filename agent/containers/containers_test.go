//go:build unix

package containers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"porchlight/agent/agentapi"
	"porchlight/agent/procinfo"
	"porchlight/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a container engine that answers what a test wants.
type fake struct {
	socket string
	list   atomic.Value // string: what /containers/json says
	mu     sync.Mutex
	asked  map[string]bool // guarded by mu
}

func engine(t *testing.T, handler http.HandlerFunc) *fake {
	t.Helper()
	dir := programs.Got(os.MkdirTemp("", "engine-"))(t) // a socket's path is short
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fake{socket: filepath.Join(dir, "engine.sock"), asked: map[string]bool{}}
	f.list.Store("[]")
	ln := programs.Got(net.Listen("unix", f.socket))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked[r.Method+" "+r.URL.String()] = true
		f.mu.Unlock()
		if handler != nil {
			handler(w, r)
			return
		}
		f.answer(w, r)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ln) })
	t.Cleanup(func() { server.Close(); serving.Wait() })
	return f
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_ping" {
		fmt.Fprint(w, "OK")
		return
	}
	fmt.Fprint(w, f.list.Load())
}

// says has the engine list containers.
func (f *fake) says(t *testing.T, all ...map[string]any) {
	t.Helper()
	f.list.Store(string(programs.Got(json.Marshal(all))(t)))
}

// described is a container as an engine lists it: web, of nginx, at 8080.
func listed(number int, change ...func(map[string]any)) map[string]any {
	one := map[string]any{
		"Id": id(number), "Names": []string{"/web"}, "Image": "nginx:1", "ImageID": "sha256:" + id(1000),
		"Created": number, "State": "running",
		"Ports":  []map[string]any{{"IP": "127.0.0.1", "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}},
		"Labels": map[string]string{"porchlight.name": "notes.maya.example", "porchlight.label": "Notes", "porchlight.port": "8080"},
	}
	for _, c := range change {
		c(one)
	}
	return one
}

// id is one whose beginning tells it from others, too.
func id(number int) string { return strings.Repeat(fmt.Sprintf("%08x", number), 8) }

// short is how the image of listed is shown.
var short = id(1000)[:12]

func with(key string, value any) func(map[string]any) {
	return func(one map[string]any) { one[key] = value }
}

// composed is as compose names a container, or an image would like to be.
func composed(name, project, service string) func(map[string]any) {
	return func(one map[string]any) {
		one["Names"] = []string{"/" + name}
		label("com.docker.compose.project", project)(one)
		label("com.docker.compose.service", service)(one)
	}
}

func label(key, value string) func(map[string]any) {
	return func(one map[string]any) {
		labels := maps.Clone(one["Labels"].(map[string]string))
		labels[key] = value
		one["Labels"] = labels
	}
}

// Weakness: whoever answers at the socket need not be an engine, or a sane one. It hangs,
// sends 1 GB, junk, or a way to somebody else; none of that is more than an error, in bounded
// time and memory.
func TestAHostileEngineIsAnError(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	ping := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/_ping" {
				fmt.Fprint(w, "OK")
				return
			}
			then(w, r)
		}
	}
	text := func(s string) http.HandlerFunc {
		return ping(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) })
	}
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-released:
		}
	}
	for what, tt := range map[string]struct {
		does http.HandlerFunc
		says string
	}{
		"hangs at once": {hang, "deadline"},
		"hangs after":   {ping(hang), "deadline"},
		"hangs in the middle": {ping(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "[")
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}), "deadline"},
		"sends 1 GB": {ping(func(w http.ResponseWriter, _ *http.Request) {
			block := []byte(strings.Repeat(" ", 1<<20))
			for range 1 << 10 {
				n, err := w.Write(block)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}), "1048576 bytes"},
		"a head without end": {ping(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 64<<10))
			fmt.Fprint(w, "[]")
		}), "header"},
		"no engine":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "no container engine"},
		"junk":             {text("\x00\xff{"), "list"},
		"not a list":       {text(`{"message":"hello"}`), "list"},
		"other types":      {text(`[{"Id":5}]`), "list"},
		"a number too big": {text(`[{"Ports":[{"PublicPort":1e99}]}]`), "list"},
		"deep":             {text(strings.Repeat("[", 100_000)), "list"},
		"two answers":      {text(`[][]`), "list"},
		"an error":         {ping(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }), "500"},
		"leads elsewhere": {ping(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/containers/x/json", http.StatusFound)
		}), "302"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := engine(t, tt.does)
			ctx := t.Context()
			if tt.says == "deadline" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			all, err := list(ctx, f.socket)
			if err == nil || !strings.Contains(err.Error(), tt.says) || all != nil {
				t.Errorf("%v, %v, want an error with %q", all, err, tt.says)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for asked := range f.asked {
				if asked != "GET /_ping" && asked != "GET /containers/json" {
					t.Errorf("it was asked %s", asked)
				}
			}
			if sent.Load() > 64<<20 {
				t.Errorf("%d bytes were taken", sent.Load())
			}
		})
	}
}

// Containers are described by what others chose: a lie is left out, or is nothing that opens
// anything.
func TestWhatIsReadOfAContainer(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		change func(map[string]any)
		name   string // as it is known; empty for one that is left out
		ports  []int
	}{
		"as it is":          {func(map[string]any) {}, "web", []int{8080}},
		"of compose":        {composed("shop-web-1", "shop", "web"), "shop/web", []int{8080}},
		"of a later count":  {composed("shop-web-12", "shop", "web"), "shop/web", []int{8080}},
		"of older compose":  {composed("shop_web_1", "shop", "web"), "shop/web", []int{8080}},
		"of a run":          {composed("shop-web-run-3f2a9c", "shop", "web"), "shop-web-run-3f2a9c", []int{8080}},
		"named in compose":  {composed("films", "shop", "web"), "films", []int{8080}},
		"half of compose":   {composed("web-1", "", "web"), "web-1", []int{8080}},
		"a service of none": {composed("shop--1", "shop", ""), "shop--1", []int{8080}},
		// Weakness: compose's labels, baked into an image, named its containers as another's.
		"an image that says so": {composed("mallet", "shop", "web"), "mallet", []int{8080}},
		"name steers":           {with("Names", []string{"/web\u202e"}), "", nil},
		"name has a slash":      {with("Names", []string{"/shop/web"}), "", nil},
		"no name":               {with("Names", []string{}), "", nil},
		"no image":              {with("ImageID", ""), "", nil},
		"another's id":          {with("Id", "../../etc"), "", nil},
		"not published":         {with("Ports", []map[string]any{{"PrivatePort": 80, "Type": "tcp"}}), "web", nil},
		"UDP":                   {with("Ports", []map[string]any{{"IP": "0.0.0.0", "PublicPort": 8080, "Type": "udp"}}), "web", nil},
		"elsewhere":             {with("Ports", []map[string]any{{"IP": "192.0.2.1", "PublicPort": 8080, "Type": "tcp"}}), "web", nil},
		"no port":               {with("Ports", []map[string]any{{"IP": "::", "PublicPort": 70000, "Type": "tcp"}}), "web", nil},
		"both kinds":            {with("Ports", []map[string]any{{"IP": "0.0.0.0", "PublicPort": 1, "Type": "tcp"}, {"IP": "::", "PublicPort": 1, "Type": "tcp"}}), "web", []int{1}},
	} {
		all := programs.Got(read("/run/e.sock", programs.Got(json.Marshal([]any{listed(1, tt.change)}))(t)))(t)
		if tt.name == "" {
			if len(all) != 0 {
				t.Errorf("%s: %+v", what, all)
			}
			continue
		}
		if len(all) != 1 || all[0].Name != tt.name || !slices.Equal(all[0].ports, tt.ports) || all[0].ImageID != id(1000) || all[0].Engine != "/run/e.sock" {
			t.Errorf("%s: %+v", what, all)
		}
	}
	odd := programs.Got(read("", programs.Got(json.Marshal([]any{listed(1, with("Image", "\x1b[2J\u202e"))}))(t)))(t)
	if len(odd) != 1 || odd[0].String() != "container web (image "+short+")" {
		t.Errorf("an image with an odd name: %q", odd)
	}
}

func at(port uint16) netip.AddrPort { return netip.AddrPortFrom(procinfo.IPv4, port) }

// Which container is behind a port is the engine's word about the socket that listens now,
// and unknown where it gives none.
func TestBehind(t *testing.T) {
	t.Parallel()
	f := engine(t, nil)
	d := open(t, f)
	forwarder := func() *agentapi.Listener {
		return &agentapi.Listener{Program: "docker-proxy", User: "root", UserID: "0"}
	}
	ln := programs.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	if got := d.Behind(at(8080), 0, forwarder(), false); got != nil {
		t.Errorf("before it was asked: %v", got)
	}
	f.says(t, listed(1))
	l := forwarder()
	if got := d.Behind(at(8080), 0, l, true); got == nil || got.Name != "web" || l.Program != "container web (nginx:1 "+short+")" {
		t.Errorf("asked: %v, called %q", got, l.Program)
	}
	f.says(t, listed(2, with("Names", []string{"/other"})))
	if got := d.Behind(at(8080), 0, forwarder(), false); got == nil || got.Name != "web" {
		t.Errorf("not asked anew: %v", got)
	}
	if got := d.Behind(at(8080), 0, forwarder(), true); got == nil || got.Name != "other" {
		t.Errorf("asked anew: %v", got)
	}
	l = forwarder()
	if got := d.Behind(at(8080), 1<<60, l, true); got != nil || l.Program != "" {
		t.Errorf("a socket that was not there when the engine was asked: %v, called %q", got, l.Program)
	}
	for program, of := range map[string]string{"": "other", "python3": ""} {
		if got := d.Behind(at(8080), 0, &agentapi.Listener{PID: os.Getpid(), Program: program}, true); got == nil || got.Name != of {
			t.Errorf("%q listens: %v", program, got)
		}
	}
	if got := d.Behind(at(9), 0, forwarder(), true); got == nil || *got != (agentapi.Container{}) {
		t.Errorf("a port of none: %v", got)
	}
	f.list.Store("no")
	if got := d.Behind(at(8080), 0, forwarder(), true); got != nil {
		t.Errorf("the engine is away: %v", got)
	}
	f.socket = ""
	if got := d.Behind(at(8080), 0, forwarder(), true); got != nil {
		t.Errorf("off: %v", got)
	}
}

// Many who ask at once, of an engine that does not answer, do not wait one after the other.
func TestLooksAreShared(t *testing.T) {
	t.Parallel()
	const callers = 20
	var asked atomic.Int32
	come := make(chan struct{})
	f := engine(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-come
		fmt.Fprint(w, "no engine")
	})
	d := open(t, f)
	var here, all sync.WaitGroup
	here.Add(callers)
	for range callers {
		all.Go(func() {
			here.Done()
			d.Behind(at(8080), 0, &agentapi.Listener{}, true)
		})
	}
	here.Wait()
	programs.Eventually(t, "the engine is asked", func() bool { return asked.Load() > 0 })
	close(come)
	all.Wait()
	if n := asked.Load(); n >= callers {
		t.Errorf("%d questions of %d who ask at once", n, callers)
	}
}

// FuzzRead: whatever an engine says, what comes of it is valid.
func FuzzRead(f *testing.F) {
	one, _ := json.Marshal([]any{listed(1)})
	f.Add(one)
	f.Add([]byte(`[{"Id":"","Names":[""],"Ports":[{}],"Labels":{"porchlight.name":".maya.example"}}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := read("/s", body)
		if err != nil && all != nil {
			t.Fatal("an error with containers")
		}
		for _, one := range all {
			if shown := one.String(); strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) || len(shown) > 220 {
				t.Errorf("shown as %q", shown)
			}
			if asks, ok, _ := one.claims("maya.example"); ok && !slices.Contains(one.ports, asks.LocalPort) {
				t.Errorf("%+v asks for a port that is not its own", one)
			}
		}
	})
}
