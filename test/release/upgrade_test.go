package release

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"porchlight/agent/store"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/visitor"
)

// built is the command line as the version that stands in it.
const built = "1.3.0+gbuilt"

var build = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "porchlight-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "porchlight")
	c := exec.Command("go", "build", "-ldflags", "-s -w -X porchlight/agent.Version="+built, "-o", file, "porchlight/agent/cmd/porchlight")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := programs.Output(c); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// real makes the served release one of the real command line, as another version.
func (w *world) real(version string) {
	w.t.Helper()
	if len(version) != len(built) {
		w.t.Fatalf("%s is not as long as %s", version, built)
	}
	program := bytes.ReplaceAll(programs.Got(build())(w.t), []byte(built), []byte(version))
	w.serves(version, w.key, map[string][]byte{"porchlight": program})
}

// service is the agent as systemd runs it. Commands named systemctl in bin speak to it.
type service struct {
	t    *testing.T
	rig  *rig.Rig
	data string

	mu      sync.Mutex
	now     *rig.Computer // nil while it does not run
	stopped func()        // is called once it was told to end
}

func newService(w *world, bin string) *service {
	w.t.Helper()
	s := &service{t: w.t, rig: rig.In(w.t, filepath.Join(w.home, ".local/bin")), data: filepath.Join(w.home, "data"), stopped: func() {}}
	s.rig.Env = rig.Environ(filepath.Join(w.home, ".config"), "HOME="+w.home)
	mux := httptest.NewServer(s)
	w.t.Cleanup(mux.Close)
	programs.Must(w.t, os.MkdirAll(bin, 0o700))
	programs.Must(w.t, os.WriteFile(filepath.Join(bin, "systemctl"), []byte(`#!/bin/sh
for word; do case $word in is-active | stop | start) verb=$word ;; esac; done
exec curl -fsS --noproxy '*' -o /dev/null "`+mux.URL+`/$verb"
`), 0o700))
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch r.URL.Path {
	case "/is-active":
		if s.now == nil {
			w.WriteHeader(http.StatusNotFound)
		}
	case "/stop":
		s.now.Signal(syscall.SIGTERM)
		s.stopped()
		if code := s.now.Wait(); code != 0 {
			s.t.Errorf("the agent ended with %d: %s", code, s.now.Stderr())
		}
		s.now = nil
	case "/start":
		s.now, err = s.rig.Computer(r.Context(), s.data, "--local")
	}
	if err != nil {
		s.t.Error(err)
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (s *service) runs() *rig.Computer { s.mu.Lock(); defer s.mu.Unlock(); return s.now }

// TestUpgradeOfWhatRuns: between two releases the service stops as it should, also for who reads
// something: a request under way is answered whole, a stream ends, and afterwards everything is
// there. The release of before takes the same data, and is refused what a newer one wrote.
func TestUpgradeOfWhatRuns(t *testing.T) {
	w := newWorld(t)
	bin := filepath.Join(w.home, "bin")
	service := newService(w, bin)
	install := func(fine bool, sentence, version string, args ...string) {
		t.Helper()
		said, went := w.shell(`PATH="$HOME/bin:$PATH"; export PATH;`, append(args, "--data", service.data)...)
		if has := w.has("porchlight"); went != fine || !strings.Contains(said, sentence) || has != version {
			t.Errorf("install %v: done %v, version %s, want %v, %q and %s:\n%s", args, went, has, fine, sentence, version, said)
		}
	}
	w.real("1.3.0+gfirst")
	install(true, "Installed", "1.3.0+gfirst")
	programs.Must(t, exec.Command(filepath.Join(bin, "systemctl"), "--user", "start", "porchlight").Run())

	finish, streamEnded := make(chan struct{}), make(chan struct{})
	app := programs.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun, ")
		w.(http.Flusher).Flush()
		switch r.URL.Path {
		case "/slow":
			<-finish
		case "/stream":
			<-r.Context().Done()
			close(streamEnded)
		}
		_, _ = io.WriteString(w, "finished")
	}))
	service.stopped = func() { close(finish) }
	agent := service.runs()
	programs.Must(t,
		agent.Run(nil, "publish", "notes", "--label", "Notes", "--port", strings.TrimPrefix(app.URL, "http://127.0.0.1:")),
		agent.Run(nil, "approve", "notes"))
	v := visitor.New(programs.Got(rig.Roots(rig.Authority(service.data)))(t))
	defer v.Close()
	link := strings.TrimSpace(programs.Got(agent.Output("open", "notes", "--print"))(t))
	at := programs.Got(v.Open(t.Context(), link))(t).URL
	begin := func(path string) io.ReadCloser {
		t.Helper()
		req := programs.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, at.JoinPath(path).String(), nil))(t)
		resp := programs.Got(v.Do(req))(t)
		programs.Got(io.ReadFull(resp.Body, make([]byte, len("begun, "))))(t)
		return resp.Body
	}
	slow, stream := begin("slow"), begin("stream")
	defer slow.Close()
	defer stream.Close()

	w.real("1.4.0+gsecnd")
	install(true, "what is under way may finish", "1.4.0+gsecnd")
	if rest, err := io.ReadAll(slow); string(rest) != "finished" || err != nil {
		t.Errorf("what was under way ended with %q, %v", rest, err)
	}
	if rest, err := io.ReadAll(stream); len(rest) > 0 || err == nil {
		t.Errorf("the stream went on with %q, %v: it seems whole", rest, err)
	}
	select {
	case <-streamEnded:
	case <-time.After(programs.Patience):
		t.Error("the app goes on with a stream that nobody reads")
	}
	opens := func() {
		t.Helper()
		agent := service.runs()
		if agent == nil {
			t.Fatal("it runs no more")
		}
		link := strings.TrimSpace(programs.Got(agent.Output("open", "notes", "--print"))(t))
		if page, err := v.Open(t.Context(), link); err != nil || page.Body != "begun, finished" {
			t.Errorf("the visitor sees %+v, %v", page, err)
		}
	}
	opens()

	// Back, as the data is the same.
	service.stopped = func() {}
	w.real("1.3.0+gfirst")
	install(true, "in the place of 1.4.0", "1.3.0+gfirst", "--downgrade")
	opens()
	w.real("1.4.0+gsecnd")
	install(true, "Installed", "1.4.0+gsecnd")

	// What a newer format wrote is refused, with the copy named, and the service goes on. Its rows
	// are changed while it does not run, as the version that knows that format is not there yet.
	programs.Must(t, exec.Command(filepath.Join(bin, "systemctl"), "--user", "stop", "porchlight").Run())
	file := filepath.Join(service.data, store.FileName)
	format := newerFormat(t, file)
	w.real("1.3.0+gfirst")
	install(false, "a newer version of Porchlight wrote it", "1.4.0+gsecnd", "--downgrade")
	install(false, file+".format-"+format+" is one", "1.4.0+gsecnd", "--downgrade")
	install(false, "Nothing was changed", "1.4.0+gsecnd", "--downgrade")
	// The copy in its place, the older one goes.
	programs.Must(t, os.Rename(file+".format-"+format, file))
	install(true, "Installed", "1.3.0+gfirst", "--downgrade")
	programs.Must(t, exec.Command(filepath.Join(bin, "systemctl"), "--user", "start", "porchlight").Run())
	opens()
}

// newerFormat has a database be of a format that nobody knows, and a copy from before beside it,
// as a version that brings it there leaves them. It returns the format of before.
func newerFormat(t *testing.T, file string) (before string) {
	t.Helper()
	raw := programs.Got(os.ReadFile(file))(t)
	db := programs.Got(bolt.Open(file, 0o600, &bolt.Options{Timeout: time.Minute}))(t)
	defer db.Close()
	programs.Must(t, db.Update(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		before = string(meta.Get([]byte("schema")))
		return meta.Put([]byte("schema"), []byte("9"))
	}))
	programs.Must(t, os.WriteFile(file+".format-"+before, raw, 0o600))
	return before
}

// TestPackage: the package is installed by the system's own means, and only where it is what was
// signed.
func TestPackage(t *testing.T) {
	w := newWorld(t)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("this system has no packages of Debian's")
	}
	if _, err := os.Stat("/usr/bin/porchlight"); err == nil {
		t.Skip("a package is installed here")
	}
	bin := filepath.Join(w.home, "bin")
	programs.Must(t, os.MkdirAll(bin, 0o700))
	programs.Must(t, os.WriteFile(filepath.Join(bin, "apt-get"), []byte("#!/bin/sh\necho \"$@\" >\"$HOME/asked\"\ndpkg-deb -f \"$3\" Version >>\"$HOME/asked\"\n"), 0o700))
	programs.Must(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o700))
	install := func() (said string, asked string, went bool) {
		t.Helper()
		_ = os.Remove(filepath.Join(w.home, "asked"))
		said, went = w.shell(`PATH="$HOME/bin:$PATH"; export PATH;`, "--package")
		raw, _ := os.ReadFile(filepath.Join(w.home, "asked"))
		return said, string(raw), went
	}
	w.serves("2.0.0", w.key, map[string][]byte{"porchlight": script("porchlight", "2.0.0", fits)})
	if said, _, went := install(); went || !strings.Contains(said, "has no file for this computer") {
		t.Errorf("without a package: %v\n%s", went, said)
	}
	w.serves("2.0.0", w.key, map[string][]byte{"porchlight.deb": w.deb("2.0.0", "2.0.0")})
	if said, asked, went := install(); !went || !strings.HasPrefix(asked, "install -y /") || !strings.HasSuffix(asked, ".deb\n2.0.0\n") {
		t.Errorf("%v, apt was asked %q\n%s", went, asked, said)
	}
	w.serves("2.1.0", w.key, map[string][]byte{"porchlight.deb": w.deb("2.1.0", "2.0.0")})
	if said, asked, went := install(); went || asked != "" || !strings.Contains(said, "was signed as 2.1.0") {
		t.Errorf("another program in it: %v, apt was asked %q\n%s", went, asked, said)
	}
	w.serves("2.1.0", w.key, map[string][]byte{"porchlight.deb": w.deb("2.1.0", "2.1.0")})
	w.change("*.deb", func(s string) string { return s + "evil" })
	if said, asked, went := install(); went || asked != "" || !strings.Contains(said, "is not the file that was signed") {
		t.Errorf("tampered: %v, apt was asked %q\n%s", went, asked, said)
	}
}

// deb is a package with a program that says it is a version.
func (w *world) deb(version, says string) []byte {
	w.t.Helper()
	tree := w.t.TempDir()
	for name, content := range map[string][]byte{
		"DEBIAN/control":     []byte("Package: porchlight\nVersion: " + version + "\nArchitecture: all\nMaintainer: x <x@example.invalid>\nDescription: a test's\n"),
		"usr/bin/porchlight": script("porchlight", says, fits),
	} {
		programs.Must(w.t, os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755))
		programs.Must(w.t, os.WriteFile(filepath.Join(tree, name), content, 0o755))
	}
	file := filepath.Join(w.t.TempDir(), "porchlight.deb")
	c := exec.Command("dpkg-deb", "--build", "--root-owner-group", tree, file)
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	return programs.Got(os.ReadFile(file))(w.t)
}
