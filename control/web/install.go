package web

import (
	"cmp"
	"net/http"
	"net/netip"
	"os"
	"path"
	"regexp"
	"sync"
	"time"

	"porchlight/control/controlapi"
	"porchlight/internal/bounds"
)

// pathInstall is where the files of a release are, if the operator serves one.
const pathInstall = "/install/"

const (
	// maxInstalls is how many may fetch a file at once, and maxInstallsNear how many of one
	// network; more are sent away.
	maxInstalls     = 32
	maxInstallsNear = 8
	// Who takes nothing for installWait, or after that less than installRate bytes a second in
	// all, is cut off: those places are for who fetches.
	installWait = 20 * time.Second
	installRate = 16 << 10
)

// installName is what a file of a release is called; nothing else is looked for.
var installName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,127}$`)

// installTypes are media types by how a name ends; others are programs.
var installTypes = map[string]string{
	".sh": "text/x-shellscript; charset=utf-8", ".md": "text/markdown; charset=utf-8",
	".pub": "text/plain; charset=utf-8", ".minisig": "text/plain; charset=utf-8", ".txt": "text/plain; charset=utf-8",
	".json": "application/json", ".deb": "application/vnd.debian.binary-package", ".rpm": "application/x-rpm",
}

// installs serves the regular files of one directory, byte for byte. It lists nothing, and
// goes into no directory and through no link.
type installs struct {
	dir *os.Root

	mu   sync.Mutex // protects what follows
	busy int        // files that are being fetched
	near map[netip.Prefix]int
}

func newInstalls(dir *os.Root) *installs {
	return &installs{dir: dir, near: map[netip.Prefix]int{}}
}

// enter counts one more of a network, until left is called; ok is false where there is no
// room for it.
func (i *installs) enter(network netip.Prefix) (left func(), ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy >= maxInstalls || i.near[network] >= maxInstallsNear {
		return nil, false
	}
	i.busy++
	i.near[network]++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.busy--
		if i.near[network]--; i.near[network] == 0 {
			delete(i.near, network)
		}
	}, true
}

func (i *installs) serve(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	if i.dir == nil || !installName.MatchString(name) {
		return notFound()
	}
	if info, err := i.dir.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return notFound() // also before it is opened: to open a pipe waits
	}
	file, err := i.dir.Open(name)
	if err != nil {
		return notFound()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() { // it was another a moment ago
		return notFound()
	}
	left, ok := i.enter(bounds.Network(clientAddr(r), 24, 48))
	if !ok {
		return &controlapi.Error{Code: controlapi.CodeTooMany, Message: "Many fetch files here at the moment. Try again in a minute.", RetryAfter: time.Minute}
	}
	defer left()
	w.Header().Set("Content-Type", installType(name))
	w.Header().Set("Cache-Control", "no-cache") // asked again, so that a new release is seen at once
	http.ServeContent(&steady{ResponseWriter: w, began: time.Now()}, r, "", info.ModTime(), file)
	return nil
}

// steady writes as long as its reader keeps up: see installWait.
type steady struct {
	http.ResponseWriter
	began   time.Time
	written int64
}

func (s *steady) Write(p []byte) (int, error) {
	until := time.Now().Add(installWait)
	if slow := s.began.Add(installWait + time.Duration(s.written/installRate)*time.Second); slow.Before(until) {
		until = slow
	}
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(until) // in the place of the one for pages
	n, err := s.ResponseWriter.Write(p)
	s.written += int64(n)
	return n, err
}

func installType(name string) string {
	if name == "SHA256SUMS" {
		name += ".txt"
	}
	return cmp.Or(installTypes[path.Ext(name)], "application/octet-stream")
}
