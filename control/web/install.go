package web

import (
	"cmp"
	"net/http"
	"os"
	"path"
	"regexp"
	"time"

	"porchlight/control/controlapi"
)

// pathInstall is where the files of a release are, if the operator serves one.
const pathInstall = "/install/"

const (
	// maxInstalls is how many may fetch a file at once; more are sent away.
	maxInstalls = 32
	// installWait is how long one may take to be fetched.
	installWait = 10 * time.Minute
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
	dir  *os.Root
	busy chan struct{} // holds one token for each file that is being fetched
}

func newInstalls(dir *os.Root) installs {
	return installs{dir, make(chan struct{}, maxInstalls)}
}

func (i installs) serve(w http.ResponseWriter, r *http.Request) error {
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
	select {
	case i.busy <- struct{}{}:
		defer func() { <-i.busy }()
	default:
		return &controlapi.Error{Code: controlapi.CodeTooMany, Message: "Many fetch files here at the moment. Try again in a minute.", RetryAfter: time.Minute}
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(installWait)) // the usual one is for pages
	w.Header().Set("Content-Type", installType(name))
	w.Header().Set("Cache-Control", "no-cache") // asked again, so that a new release is seen at once
	http.ServeContent(w, r, "", info.ModTime(), file)
	return nil
}

func installType(name string) string {
	if name == "SHA256SUMS" {
		name += ".txt"
	}
	return cmp.Or(installTypes[path.Ext(name)], "application/octet-stream")
}
