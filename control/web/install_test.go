package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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

// TestInstallIsBounded: past so many at once the next is sent away, with when to come again.
func TestInstallIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs.Must(t, os.WriteFile(filepath.Join(dir, "install.sh"), nil, 0o600))
	root := programs.Got(os.OpenRoot(dir))(t)
	defer root.Close()
	h := newHandler(newRig(t).svc, Config{Install: root})
	for range maxInstalls {
		h.install.busy <- struct{}{}
	}
	if got := fetch(h.mount(), http.MethodGet, "/install/install.sh", ""); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d, %v", got.Code, got.Header())
	}
	<-h.install.busy
	if got := fetch(h.mount(), http.MethodGet, "/install/install.sh", ""); got.Code != http.StatusOK {
		t.Errorf("then: %d", got.Code)
	}
}

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
