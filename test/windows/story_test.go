package windows

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

const runKey = `HKCU\Software\Microsoft\Windows\CurrentVersion\Run`

// The owner's story, from the installer to what it leaves.
func TestStory(t *testing.T) {
	setup := os.Getenv("PORCHLIGHT_SETUP")
	w := newWine(t)
	app := filepath.Join(t.TempDir(), "notes.exe")
	build := exec.Command("go", "build", "-o", app, "./app")
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	w.installs(setup)
	w.opens(app)

	// An upgrade is the installer once more, over what runs: what was approved stays.
	before := w.running().PID
	w.run(setup, "/S")
	w.until("the new agent", func() bool { now := w.running(); return now.PID != 0 && now.PID != before })
	w.until("its answer", func() bool { return w.status() })
	if out := w.run(inside("porchlight.exe"), "apps"); !strings.Contains(out, "notes") {
		t.Errorf("after an upgrade: %s", out)
	}

	link := strings.TrimSpace(w.run(inside("porchlight.exe"), "open", "notes", "--print"))
	at := programs.Got(url.Parse(link))(t)
	w.run(inside("porchlight.exe"), "revoke", "notes")
	if body, status := w.visitor("https://notes." + strings.TrimPrefix(at.Host, "notes.")); status == "200" && strings.Contains(body, "owner") {
		t.Errorf("a revoked app is open: %s %s", status, body)
	}

	// The uninstaller keeps what is the owner's, and with /PURGE does not.
	w.run(inside("uninstall.exe"), "/S")
	w.until("the programs are gone", func() bool {
		return !there(w.installed("porchlight-agent.exe")) && !there(w.installed("porchlight.exe"))
	})
	if !there(filepath.Join(w.data(), "agent.db")) {
		t.Error("the uninstaller removed what the owner keeps")
	}
	if out, err := w.script(t.Context(), "exec", "reg", "query", runKey, "/v", "Porchlight"); err == nil {
		t.Errorf("it still starts at login: %s", out)
	}
	w.installs(setup)
	w.run(inside("uninstall.exe"), "/S", "/PURGE")
	w.until("everything is gone", func() bool { return !there(w.data()) && !there(w.installed("porchlight.exe")) })
}

// installs has the installer run without a word, and looks at what it did.
func (w *wine) installs(setup string) {
	w.t.Helper()
	w.run(setup, "/S")
	for _, name := range []string{"porchlight.exe", "porchlight-agent.exe", "uninstall.exe"} {
		if !there(w.installed(name)) {
			w.t.Errorf("%s was not installed", name)
		}
	}
	if out := w.run("reg", "query", runKey, "/v", "Porchlight"); !strings.Contains(out, `porchlight-agent.exe" agent --local`) {
		w.t.Errorf("at login starts: %s", out)
	}
	w.until("the agent", func() bool { return w.status() })
	if at := w.running().OwnerSocket; !strings.HasPrefix(at, `\\.\pipe\porchlight-`) {
		w.t.Errorf("the owner's socket is %s", at)
	}
	// Wine keeps who may enter as this system does, and counts the user as a group, too.
	if info, err := os.Stat(w.data()); err != nil || info.Mode().Perm()&0o007 != 0 {
		w.t.Errorf("the data directory is %v, %v", info.Mode(), err)
	}
}

// opens has an app ask, the owner say yes, and visitors come, by the owner's link and by
// an app password.
func (w *wine) opens(app string) {
	w.t.Helper()
	notes := w.begin(app, "notes")
	programs.Got(notes.Says(w.t.Context(), `answered: .*"pending"`))(w.t)
	if out := w.run(inside("porchlight.exe"), "approve", "notes"); !regexp.MustCompile(`Approving Notes on port \d+: notes\S*, run by maya`).MatchString(out) {
		w.t.Errorf("approved is %s, want the program notes of maya", out)
	}
	programs.Got(notes.Says(w.t.Context(), `answered: .*"live"`))(w.t)

	link := strings.TrimSpace(w.run(inside("porchlight.exe"), "open", "notes", "--print"))
	body, status := w.visitor(link)
	if status != "200" || !strings.Contains(body, "is owner of Notes") {
		w.t.Fatalf("the owner's link: %s %s", status, body)
	}
	made := w.run(inside("porchlight.exe"), "passwords", "add", "notes", "--name", "curl")
	password := regexp.MustCompile(`password:\s+(\S+)`).FindStringSubmatch(made)
	if password == nil {
		w.t.Fatalf("no password: %s", made)
	}
	at := programs.Got(url.Parse(link))(w.t)
	home := "https://notes." + strings.TrimPrefix(at.Host, "notes.")
	if body, status := w.visitor("-H", "X-Porchlight-Key: "+password[1], home); status != "200" || !strings.Contains(body, "is owner") {
		w.t.Errorf("an app password: %s %s", status, body)
	}
	if _, status := w.visitor("-c", "/dev/null", "-b", "/dev/null", "-H", "X-Porchlight-Key: wrong", home); status == "200" {
		w.t.Error("a wrong password opens it")
	}
	w.t.Logf("doctor:\n%s", first(w.script(w.t.Context(), "exec", inside("porchlight.exe"), "doctor")))
}

func first(out string, _ error) string { return out }

// status says whether the agent answers the owner.
func (w *wine) status() bool {
	if !there(filepath.Join(w.data(), "agent.json")) {
		return false
	}
	_, err := w.script(w.t.Context(), "exec", inside("porchlight.exe"), "account")
	return err == nil
}

func (w *wine) running() (word agentapi.Running) {
	raw, err := os.ReadFile(filepath.Join(w.data(), "agent.json"))
	if err == nil {
		err = json.Unmarshal(raw, &word)
	}
	if err != nil {
		return agentapi.Running{}
	}
	return word
}
