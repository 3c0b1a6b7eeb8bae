//go:build clients

package clients

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestReadmeRuns types README's lines.
func TestReadmeRuns(t *testing.T) {
	t.Parallel()
	h := emptyHouse(t)
	app := strconv.Itoa(programs.FreePort(t))
	page{
		file:   "../../README.md",
		here:   []string{"http.server --bind 127.0.0.1 8000", "http.server --bind 127.0.0.1 " + app, "--port 8000", "--port " + app, "share 8000", "share " + app},
		serves: map[string]string{"python3 -m http.server": "Serving HTTP"},
		ends:   map[string]string{"porchlight share": "What visitors ask of it follows"},
		says: map[string]string{
			"porchlight publish": "https://notes." + h.account.Host, "porchlight people": "Notes", "porchlight doctor": "Notes answers on port",
		},
		left: map[string]string{
			"make run":       "the programs that it builds are the ones under test, and make test is what runs this",
			"porchlight run": "it ends as the program that it runs does; the tests of agent/cmd/porchlight try it",
			"browser ──TLS":  "it is a picture",
		},
	}.typed(t, h)
}

const theWalk = "Ten minutes from an empty machine"

// TestWalkRuns types the walk of docs/operating.md from an empty machine to the first
// account, with the settings and the unit as they are written: but for public names, ports
// and directories, and a certificate of the server's own, because there is no public
// network in which an authority could look whether the names lead here.
func TestWalkRuns(t *testing.T) {
	t.Parallel()
	h := &house{env: append(os.Environ(), "PORCHLIGHT_DATA=")}
	dir := t.TempDir()
	etc := filepath.Join(dir, "etc")
	if err := os.MkdirAll(filepath.Join(etc, "secrets"), 0o700); err != nil { // as the package does
		t.Fatal(err)
	}
	programs.Must(t, os.WriteFile(filepath.Join(etc, "secrets", "smtp-password"), []byte("a password\n"), 0o600))
	page{
		file: "../../docs/operating.md",
		part: theWalk,
		here: []string{
			"/etc/porchlight", etc, "/var/lib/porchlight", filepath.Join(dir, "data"), "porch.example", "porch.localhost", "control.example", "control.localhost",
			`":443"`, strconv.Quote(programs.FreeAddress(t)), "127.0.0.1:9100", programs.FreeAddress(t), "mail.example:587", programs.FreeAddress(t),
			"tls: acme ", "tls: internal ",
		},
		config: filepath.Join(etc, "control.yaml"),
		unit:   "sudo systemctl enable",
		says:   map[string]string{"curl ": "It serves.", "sudo porchlight-control account add": "maya@example.net can sign in now."},
		left: map[string]string{
			"control.example.     A": "they are lines of DNS, not of a shell",
			"sudo apt update":        "it installs on this machine; test/package installs the package on a clean Debian",
			"sudo ufw":               "it changes this machine's firewall",
			"sudo systemctl enable":  "no service manager runs where the tests do: what the unit starts is started by hand, with its credentials",
		},
	}.typed(t, h)
}

// TestOperatingRuns types the other blocks of docs/operating.md: a server of our own domain on
// a free port, whose certificate nobody has to order.
func TestOperatingRuns(t *testing.T) {
	t.Parallel()
	h := &house{env: append(os.Environ(), "PORCHLIGHT_DATA=")}
	dir, listen := t.TempDir(), "127.0.0.1:"+strconv.Itoa(programs.FreePort(t))
	page{
		file: "../../docs/operating.md",
		but:  theWalk,
		here: []string{
			"/etc/porchlight", filepath.Join(dir, "etc"), "/var/lib/porchlight", filepath.Join(dir, "data"), "porch.example", "porch.localhost", "control.example", "control.localhost",
			"--listen :443", "--listen " + listen, "--metrics 127.0.0.1:9100", "--metrics 127.0.0.1:" + strconv.Itoa(programs.FreePort(t)),
			"upgrade --check --config /etc/porchlight/control.yaml", "upgrade --check --data " + filepath.Join(dir, "data"), // the file is empty here
			"--tls acme", "--tls internal", "import rows --postgres URL", "import rows --data " + filepath.Join(dir, "moved"),
		},
		serves: map[string]string{"porchlight-control serve --data": "control plane at"},
		stops:  []string{"porchlight-control export rows"},
		left: map[string]string{
			"control.example.           A": "they are lines of DNS, not of a shell",
			"porch.example.        NS":     "they are lines of DNS, not of a shell",
			"curl -fsSO https":             "its server has no certificate of an authority, and no release; test/release types it at one that has",
			"dns-update:":                  "it names a DNS server of the operator's own; the tests of control/dnsupdate run BIND",
			"porchlight settings":          "an owner types it at a computer; the tests of agent/cmd/porchlight do",
			"bootstrap:":                   "it is for Patroni; make load PART=ha runs three servers with these settings",
			"scrape_configs:":              "it is for Prometheus; test/nodes holds rules and dashboard against what a node serves",
			"17 3 * * * root":              "it is for cron; TestBackupEveryNight has a shell carry it out",
			"systemctl enable":             "no service manager runs where the tests do; TestUnit has systemd-analyze verify the unit, and TestWalkRuns starts what it starts",
		},
	}.typed(t, h)
}

// TestBackupEveryNight carries out the line for cron of docs/operating.md two nights after
// each other: a backup never overwrites a file.
func TestBackupEveryNight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "control.yaml")
	programs.Must(t, os.WriteFile(config, []byte("data: "+filepath.Join(dir, "data")+"\ndomain: porch.localhost\nlisten: [\"127.0.0.1:0\"]\n"), 0o600))
	server := programs.Begin(t, exec.Command(filepath.Join(binDir(t), "porchlight-control"), "serve", "--config", config, "--public-port", "443"))
	programs.Got(server.Says(t.Context(), `listening on (\S+)`))(t)
	_, line, found := strings.Cut(read(t, "../../docs/operating.md"), "\n17 3 * * * root ")
	line, _, ended := strings.Cut(line, "\n")
	if !found || !ended {
		t.Fatal("docs/operating.md has no line for cron")
	}
	line = strings.NewReplacer(`\%`, "%", "/etc/porchlight/control.yaml", config, "/var/backups", dir).Replace(line)
	shell := func(line string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+binDir(t)+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	shell("porchlight-control account add maya@example.net --config " + config)
	for range 2 {
		shell(line)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "porchlight", "*"))
	if err != nil || len(kept) == 0 || len(kept) > 2 { // two where midnight is between
		t.Fatalf("kept %v, %v", kept, err)
	}
	shell("porchlight-control restore " + kept[0] + " --data " + filepath.Join(dir, "back"))
	shell("porchlight-control account list --domain porch.localhost --data " + filepath.Join(dir, "back") + " | grep maya@example.net")
}

// TestUnit has systemd look at the unit, with the program under test in its place.
func TestUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("this test needs systemd-analyze, of the package systemd")
	}
	unit := strings.ReplaceAll(read(t, "../../build/linux/porchlight-control.service"), "/usr/bin/", binDir(t)+"/")
	file := filepath.Join(t.TempDir(), "porchlight-control.service")
	programs.Must(t, os.WriteFile(file, []byte(unit), 0o644))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), filepath.Base(file)) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRemoteClientRuns types docs/remote-client.md's blocks but for its programs,
// which TestReaders runs.
func TestRemoteClientRuns(t *testing.T) {
	t.Parallel()
	h := emptyHouse(t)
	page{
		file: "../../docs/remote-client.md",
		here: []string{"~/.local/share/porchlight", h.agent.Data, "--data DIR", "--data " + filepath.Join(h.agent.Data, "control")},
		left: map[string]string{
			"export AUTH_URL":    "TestReaders gives each program a client of its own in these variables",
			"mkdir -p reader-go": "it fetches a module from the internet; TestReaders runs the program with the version of go.mod",
			"mkdir -p reader-js": "it fetches a package from the internet; TestReaders runs the program with that of package-lock.json",
			"sudo apt update":    "build/setup.sh test has installed it; TestReaders runs the program, and has the person answer",
			"bash reader.sh":     "TestReaders runs it, and has the person answer",
			"curl --user":        "it asks for an app password; test/e2e/passwords.test.mjs makes one in a browser and has curl use it",
		},
	}.typed(t, h)
}

// binDir is the directory of the programs under test.
func binDir(t testing.TB) string {
	return programs.Got(filepath.Abs(cmp.Or(os.Getenv("PORCHLIGHT_PROGRAMS"), "../../bin")))(t)
}
