//go:build clients

package clients

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"porchlight/test/programs"
	"porchlight/test/visitor"
)

// TestVerifyingSamples runs the apps of docs/writing-an-app.md that believe the token alone:
// each knows the owner who comes by its address, and nobody who comes to its port, with
// whatever token.
func TestVerifyingSamples(t *testing.T) {
	h := emptyHouse(t)
	dir := t.TempDir()
	goApp := filepath.Join(dir, "verify")
	if out, err := exec.Command("go", "build", "-o", goApp, "./verify").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// PHP keeps the keys beside the program, and finds no *.localhost by itself.
	phpApp := filepath.Join(dir, "first.php")
	programs.Must(t, os.WriteFile(filepath.Join(dir, "verify.php"), []byte(read(t, "php/verify.php")), 0o600), os.WriteFile(phpApp, []byte(
		`<?php stream_context_set_default(["http" => ["proxy" => "`+strings.Replace(h.proxy, "http", "tcp", 1)+`"]]); require "verify.php";`), 0o600))

	other := programs.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("X-Service-Token")) }))
	h.share(t, "other", portOf(other))
	foreign := h.open(t, "other")
	if strings.Count(foreign, ".") != 2 {
		t.Fatalf("the other app was told by %q", foreign)
	}
	for name, command := range map[string][]string{
		"go": {goApp}, "node": program("node/verify.mjs"), "python": program("python/verify.py"),
		"php": {"php", "-d", "openssl.cafile=" + h.rootPEM, "-S", "127.0.0.1:PORT", phpApp},
	} {
		t.Run(name, func(t *testing.T) {
			port := programs.FreePort(t)
			here := "127.0.0.1:" + strconv.Itoa(port)
			address := "https://" + name + "." + h.account.Host
			for i := range command {
				command[i] = strings.Replace(command[i], "PORT", strconv.Itoa(port), 1)
			}
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(h.programEnv(), "ADDRESS="+address, "PORT="+strconv.Itoa(port))
			p := programs.Got(programs.Start(cmd))(t)
			t.Cleanup(func() { p.Stop() })
			ask := func(token string) (int, string) {
				req := programs.Got(http.NewRequestWithContext(t.Context(), "GET", "http://"+here, nil))(t)
				if token != "" {
					req.Header.Set("X-Service-Token", token)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return 0, err.Error()
				}
				defer res.Body.Close()
				body, _ := io.ReadAll(res.Body)
				return res.StatusCode, string(body)
			}
			programs.Eventually(t, "it listens", func() bool { status, _ := ask(""); return status != 0 })
			h.share(t, name, port)
			want := h.account.AccountID + " " + h.account.Email + " owner"
			if got := h.open(t, name); got != want {
				t.Fatalf("the owner is %q, want %q; %s", got, want, p.Stderr())
			}
			for what, token := range forgeries(t, foreign, address) {
				if status, body := ask(token); status != http.StatusForbidden {
					t.Errorf("%s: %d %s", what, status, body)
				}
			}
		})
	}
}

// share publishes an app that is told who is there by a token.
func (h *house) share(t testing.TB, name string, port int) {
	t.Helper()
	h.porchlight(t, "publish", name, "--label", name, "--port", strconv.Itoa(port))
	h.porchlight(t, "approve", name)
	h.porchlight(t, "options", name, "--identity-token")
}

// open is what an app answers to the owner.
func (h *house) open(t testing.TB, name string) string {
	t.Helper()
	v := visitor.New(h.roots)
	defer v.Close()
	page, err := v.Open(t.Context(), strings.TrimSpace(h.porchlight(t, "open", name, "--print")))
	programs.Must(t, err)
	return page.Body
}

// forgeries are tokens that a program on this computer can have: another app's, and what
// can be made of it.
func forgeries(t testing.TB, foreign, address string) map[string]string {
	t.Helper()
	parts := strings.Split(foreign, ".")
	claims := jwt.MapClaims{}
	token, _, err := jwt.NewParser().ParseUnverified(foreign, claims)
	programs.Must(t, err)
	claims["aud"] = address
	forge := func(method jwt.SigningMethod, key any) string {
		forged := jwt.NewWithClaims(method, claims)
		forged.Header["typ"], forged.Header["kid"] = token.Header["typ"], token.Header["kid"]
		return programs.Got(forged.SignedString(key))(t)
	}
	_, own, err := ed25519.GenerateKey(rand.Reader)
	programs.Must(t, err)
	byOther := forge(jwt.SigningMethodEdDSA, own)
	return map[string]string{
		"none": "", "nonsense": "a.b.c", "another app's": foreign, "signed by another key": byOther,
		"unsigned": forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), "HS256 with its key's name": forge(jwt.SigningMethodHS256, []byte(token.Header["kid"].(string))),
		"other claims": parts[0] + "." + strings.Split(byOther, ".")[1] + "." + parts[2], "cut off": foreign[:len(foreign)-9],
	}
}
