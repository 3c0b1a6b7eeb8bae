package web

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"porchlight/internal/bounds"
	"porchlight/test/programs"
)

// TestInstall: the files of a release come byte for byte, with their types, whole or in part.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := bytes.Repeat([]byte{0x7f, 'E', 'L', 'F', 0, '\r', '\n'}, 50_000)
	types := map[string]string{
		"install.sh": "text/x-shellscript; charset=utf-8", "SHA256SUMS": "text/plain; charset=utf-8", "SHA256SUMS.minisig": "text/plain; charset=utf-8",
		"porchlight_0.1.0-unsigned_linux_amd64": "application/octet-stream", "porchlight_1.2.3_windows_amd64.exe": "application/octet-stream",
		"porchlight_0.1.0+gabc1234_amd64.deb": "application/vnd.debian.binary-package", "porchlight-0.1.0-1.x86_64.rpm": "application/x-rpm",
		"update.json": "application/json", "notes_0.1.0.md": "text/markdown; charset=utf-8",
	}
	for name := range types {
		programs.Must(t, os.WriteFile(filepath.Join(dir, name), program, 0o600))
	}
	h := installing(t, dir)
	for name, media := range types {
		got := fetch(h, http.MethodGet, "/install/"+name, "")
		if got.Code != http.StatusOK || !bytes.Equal(got.Body.Bytes(), program) || got.Header().Get("Content-Type") != media {
			t.Errorf("%s: %d, %d bytes, %s", name, got.Code, got.Body.Len(), got.Header().Get("Content-Type"))
		}
		if got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be taken for something else", name)
		}
	}
	if got := fetch(h, http.MethodHead, "/install/install.sh", ""); got.Code != http.StatusOK || got.Body.Len() != 0 || got.Header().Get("Content-Length") != "350000" {
		t.Errorf("HEAD: %d, %d bytes, %v", got.Code, got.Body.Len(), got.Header())
	}
	if got := fetch(h, http.MethodGet, "/install/install.sh", "bytes=7-13"); got.Code != http.StatusPartialContent || !bytes.Equal(got.Body.Bytes(), program[7:14]) {
		t.Errorf("a part: %d, %q", got.Code, got.Body)
	}
}

// Weakness: a server of files gives away what lies beside them, by names that lead out, by
// links, or by a list. Checked: only regular files of the directory itself come, and
// without a directory nothing does.
func TestInstallGivesNothingElse(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "release")
	programs.Must(t, os.MkdirAll(filepath.Join(dir, "below"), 0o700))
	for _, name := range []string{"secret", "release/.hidden", "release/below/deep", "release/install.sh", "release/a b"} {
		programs.Must(t, os.WriteFile(filepath.Join(above, name), []byte("secret"), 0o600))
	}
	if runtime.GOOS != "windows" {
		programs.Must(t, os.Symlink("../secret", filepath.Join(dir, "out")))
		programs.Must(t, os.Symlink("install.sh", filepath.Join(dir, "in")))
	}
	h := installing(t, dir)
	for _, name := range []string{
		"", ".", "..", "%2e%2e", "..%2fsecret", "%2e%2e%2fsecret", "..%5csecret", ".hidden", "below", "below%2fdeep", "below/deep", "out", "in", "nothing",
		"a%20b", "install.sh%00", "install.sh/", strings.Repeat("a", 200),
	} {
		if got := fetch(h, http.MethodGet, "/install/"+name, ""); got.Code == http.StatusOK || strings.Contains(got.Body.String(), "secret") {
			t.Errorf("%q: %d, %s", name, got.Code, got.Body)
		}
	}
	if got := fetch(h, http.MethodPost, "/install/install.sh", ""); got.Code == http.StatusOK {
		t.Error("a POST fetches it")
	}
	if got := fetch(New(newRig(t).svc, Config{}), http.MethodGet, "/install/install.sh", ""); got.Code != http.StatusNotFound {
		t.Errorf("without a directory: %d", got.Code)
	}
}

// TestInstallIsBounded: past so many at once, in all or of one network, the next is sent away, with
// when to come again.
func TestInstallIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, os.WriteFile(filepath.Join(dir, "install.sh"), nil, 0o600))
	root := programs.Got(os.OpenRoot(dir))(t)
	defer root.Close()
	h := newHandler(newRig(t).svc, Config{Install: root})
	var left []func()
	enter := func(address string) {
		t.Helper()
		leave, ok := h.install.enter(bounds.Network(netip.MustParseAddr(address), 24, 48))
		if !ok {
			t.Fatalf("%s is sent away", address)
		}
		left = append(left, leave)
	}
	answers := func(what string, want int) {
		t.Helper()
		got := fetch(h.mount(), http.MethodGet, "/install/install.sh", "") // from 192.0.2.1
		if got.Code != want || (want != http.StatusOK) != (got.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %d, %v", what, got.Code, got.Header())
		}
	}
	for range maxInstallsNear {
		enter("192.0.2.77")
	}
	answers("one more of its network", http.StatusTooManyRequests)
	left[0]()
	answers("then", http.StatusOK)
	left = left[1:]
	for n := len(left); n < maxInstalls; n++ {
		enter(fmt.Sprintf("2001:db8:%d::1", n/maxInstallsNear))
	}
	answers("one more in all", http.StatusTooManyRequests)
	for _, leave := range left {
		leave()
	}
	answers("afterwards", http.StatusOK)
	if len(h.install.near) > 0 {
		t.Errorf("%v are remembered", h.install.near)
	}
}

// Weakness: who fetches a file and reads nothing of it, or a byte now and then, holds a place for as
// long as a slow line may take. Checked: they are cut off soon, and who keeps up is not.
func TestInstallIsNotHeldUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const size = 4 << 20
	programs.Must(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, size), 0o600))
	for name, c := range map[string]struct {
		first, each int // bytes that are read at once, and then every second
		whole       bool
		within      time.Duration
	}{
		"nothing":             {0, 0, false, installWait + time.Second},
		"a byte at a time":    {0, 1, false, installWait + time.Second},
		"half, then nothing":  {size / 2, 0, false, installWait + time.Second},
		"too little for long": {0, installRate / 2, false, 3 * installWait},
		"a slow line":         {0, installRate * 3 / 2, true, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root := programs.Got(os.OpenRoot(dir))(t)
				defer root.Close()
				mux := http.NewServeMux()
				ended := make(chan struct{})
				i := newInstalls(root)
				mux.HandleFunc("GET /install/{file}", func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					programs.Must(t, i.serve(w, r))
				})
				reader, conn := net.Pipe()
				defer reader.Close()
				server := &http.Server{Handler: mux}
				listener := oneConn{make(chan net.Conn, 1)}
				listener.conns <- conn
				go server.Serve(listener)
				defer server.Close()
				programs.Got(io.WriteString(reader, "GET /install/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))(t)
				began, read := time.Now(), 0
				take := func(most int) (err error) {
					n, err := io.CopyN(io.Discard, reader, int64(most))
					read += int(n)
					return err
				}
				err := take(c.first)
				for err == nil {
					select {
					case <-ended:
						err = take(size) // what was written before
						continue
					case <-time.After(time.Second):
					}
					err = take(c.each)
				}
				if took := time.Since(began); (read > size) != c.whole || took > c.within {
					t.Errorf("after %v it has %d bytes", took, read)
				}
				synctest.Wait()
				if i.busy != 0 {
					t.Error("its place is held")
				}
			})
		})
	}
}

// oneConn listens for what is in its channel.
type oneConn struct{ conns chan net.Conn }

func (l oneConn) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (l oneConn) Close() error   { close(l.conns); return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func installing(t *testing.T, dir string) http.Handler {
	t.Helper()
	root := programs.Got(os.OpenRoot(dir))(t)
	t.Cleanup(func() { root.Close() })
	return New(newRig(t).svc, Config{Install: root})
}

func fetch(h http.Handler, method, path, part string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://control.localhost:8443"+path, nil)
	if part != "" {
		r.Header.Set("Range", part)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
