package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"porchlight/internal/commandline"
	"porchlight/test/programs"
)

func testFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.String(flagFile, "", "")
	f.String("auth-host", "default", "")
	f.Int("public-port", 443, "")
	f.StringArray("listen", []string{":443"}, "")
	f.Bool("open-sign-up", false, "")
	f.Duration("grace", time.Second, "")
	f.Bool("json", false, "") // not configurable
	return f
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		file string
		want string // auth-host, public-port, listen, open-sign-up, grace
	}{
		{name: "nothing", want: "default 443 [:443] false 1s"},
		{name: "file", file: "auth-host: file\npublic-port: 1\nlisten: [':1', ':2']\nopen-sign-up: true\ngrace: 3s\n", want: "file 1 [:1,:2] true 3s"},
		{name: "a plain value where a list may be", file: "listen: :1\n", want: "default 443 [:1] false 1s"},
		{name: "settings of other commands", file: "domain: porch.example\nauth-host: file\n", want: "file 443 [:443] false 1s"},
		{name: "environment", env: map[string]string{"AUTH_HOST": "env", "LISTEN": ":1 :2", "OPEN_SIGN_UP": "true"}, want: "env 443 [:1,:2] true 1s"},
		{name: "an empty variable is none", env: map[string]string{"AUTH_HOST": ""}, want: "default 443 [:443] false 1s"},
		{name: "environment over file", env: map[string]string{"AUTH_HOST": "env", "LISTEN": ":3"}, file: "auth-host: file\nlisten: [':1', ':2']\n", want: "env 443 [:3] false 1s"},
		{name: "flag over all", args: []string{"--auth-host", "flag", "--listen", ":9"}, env: map[string]string{"AUTH_HOST": "env", "LISTEN": ":3"}, file: "auth-host: file\nlisten: ':1'\ngrace: 3s\n", want: "flag 443 [:9] false 3s"},
		{name: "a flag that says the default", args: []string{"--auth-host", "default"}, file: "auth-host: file\n", want: "default 443 [:443] false 1s"},
		{name: "only what is configurable", env: map[string]string{"JSON": "true"}, want: "default 443 [:443] false 1s"},
		{name: "an empty file", file: "# nothing\n", want: "default 443 [:443] false 1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := testFlags()
			env := map[string]string{}
			for k, v := range c.env {
				env[envPrefix+k] = v
			}
			if c.file != "" {
				path := filepath.Join(t.TempDir(), "control.yaml")
				programs.Must(t, os.WriteFile(path, []byte(c.file), 0o600))
				// The file may be named by the environment as well.
				env[envPrefix+"CONFIG"] = path
			}
			programs.Must(t, f.Parse(c.args))
			programs.Must(t, complete(f, configurable(), func(name string) (string, bool) { v, ok := env[name]; return v, ok }))
			var got []string
			for _, name := range []string{"auth-host", "public-port", "listen", "open-sign-up", "grace"} {
				got = append(got, f.Lookup(name).Value.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if f.Lookup("json").Changed {
				t.Error("--json was set")
			}
		})
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{"auth-host: a\ncolour: blue\n", `control.yaml:2: there is no setting "colour"`},
		{"config: other.yaml\n", `control.yaml:1: there is no setting "config"`},
		{"json: true\n", `control.yaml:1: there is no setting "json"`},
		{"grace: 1s\n\ngrace: 2s\n", "control.yaml:3: grace is set twice"},
		{"grace: soon\n", "control.yaml:1: grace does not take what is there"},
		{"listen:\n  - :1\n  - {a: b}\n", "control.yaml:3: listen takes a plain value, or a list of them"},
		{"listen:\n", "control.yaml:1: listen takes a plain value, or a list of them"},
		{"- listen\n", `control.yaml:1: settings are written as "name: value"`},
		{"grace: 1s\n---\ngrace: 1s\n", "control.yaml:1: the file holds more than one document"},
		{"a: [\n", "control.yaml is not YAML: "},
		{"? [a]\n: b\n", "control.yaml:1: there is no setting"},
		{strings.Repeat("#", maxConfig+1), "control.yaml is too large for a configuration"},
	} {
		path := filepath.Join(t.TempDir(), "control.yaml")
		programs.Must(t, os.WriteFile(path, []byte(c.file), 0o600))
		f := testFlags()
		programs.Must(t, f.Parse([]string{"--config", path}))
		err := complete(f, configurable(), func(string) (string, bool) { return "", false })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %s", c.file, err, c.want)
		}
		if err != nil && commandline.ExitCode(err, nil) != commandline.ExitUsage {
			t.Errorf("%.40q: exit %d", c.file, commandline.ExitCode(err, nil))
		}
	}
	f := testFlags()
	err := complete(f, configurable(), func(name string) (string, bool) { return "s3cret", name == envPrefix+"PUBLIC_PORT" })
	if err == nil || !strings.Contains(err.Error(), "PORCHLIGHT_CONTROL_PUBLIC_PORT") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a variable that is no number: %v", err)
	}
}

// FuzzParseConfig: a file is refused or its settings are known ones, once each.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{"", "listen: [':1', ':2']\ndata: /x\n", "data: *a\n", "? a\n", "&a data: *a", "data: !!binary x\n", "{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		settings, err := parseConfig(raw, configurable())
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range settings {
			if seen[s.name] || !strings.Contains(" "+strings.Join(configurable(), " ")+" ", " "+s.name+" ") || s.line < 1 {
				t.Fatalf("%+v", s)
			}
			seen[s.name] = true
		}
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serv"}, commandline.ExitUsage, `there is no command "serv"`},
		{[]string{"account", "ad"}, commandline.ExitUsage, `there is no command "account ad". Did you mean add?`},
		{[]string{"account", "add", "--data", dir}, commandline.ExitUsage, "porchlight-control: account add needs an EMAIL"},
		{[]string{"account", "list"}, commandline.ExitUsage, "say which control plane"},
		{[]string{"account", "list", "--data", dir}, commandline.ExitNotRunning, "there is no control plane in " + dir + ". Is its data directory another one (--data, --config)?\n"},
		{[]string{"account", "list", "--colour"}, commandline.ExitUsage, "unknown flag"},
		{[]string{"serve"}, commandline.ExitUsage, "--data DIR or --postgres URL"},
		{[]string{"serve", "--data", dir}, commandline.ExitUsage, "--domain"},
		{[]string{"serve", "--data", dir, "--domain", "d.example"}, commandline.ExitUsage, "--listen"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", "443"}, commandline.ExitUsage, "(--listen)"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--tls", "acme2"}, commandline.ExitUsage, "internal, acme or files"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--tls", "files"}, commandline.ExitUsage, "--cert FILE and --key FILE"},
		{[]string{"serve", "--postgres", "postgres:///x", "--domain", "d.example", "--listen", ":0"}, commandline.ExitUsage, "give --data DIR too"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--log-level", "loud"}, commandline.ExitUsage, "--log-level"},
		{[]string{"serve", "--data", dir, "--domain", "D_", "--listen", "127.0.0.1:0"}, commandline.ExitUsage, "is not a domain"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", "127.0.0.1:0", "--tls", "files", "--cert", dir + "/c", "--key", dir + "/k"}, commandline.ExitRefused, "cannot read the certificate"},
		{[]string{"serve", "--tls", "files", "--cert", "c", "--key", "k", "--postgres", "postgres://me:hunter2@127.0.0.1:1/x", "--postgres-wait", "0s", "--domain", "d.example", "--listen", "127.0.0.1:0"}, commandline.ExitRefused, "cannot open the database"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--metrics", ":9100"}, commandline.ExitUsage, "--metrics-exposed"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--limit-visitors", "-5"}, commandline.ExitUsage, "--limit-visitors is from 1"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--limit-handshakes-per-address", "5000"}, commandline.ExitUsage, "more than --limit-handshakes"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--trusted-proxies", "10.0.0.0/8", "--trusted-proxies", "0.0.0.0/0"}, commandline.ExitUsage, "(--trusted-proxies)"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--metrics", "192.0.2.1:9100"}, commandline.ExitUsage, "--metrics-exposed"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--smtp", "smtp://mail.example", "--outbox", dir}, commandline.ExitUsage, "choose one"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", ":0", "--mail-from", "a@b.example"}, commandline.ExitUsage, "belongs to --smtp"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", "127.0.0.1:0", "--smtp", "smtp://me:hunter2@"}, commandline.ExitUsage, "needs a host"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", "127.0.0.1:0", "--smtp", "smtp://me@mail.example"}, commandline.ExitUsage, "no password"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", "127.0.0.1:0", "--smtp", "smtp://me@mail.example", "--smtp-password-file", dir + "/none"}, commandline.ExitRefused, "cannot read the mail server's password"},
		{[]string{"serve", "--data", dir, "--domain", "d.example", "--listen", "127.0.0.1:0", "--smtp", "smtp://mail.example", "--mail-from", "nobody"}, commandline.ExitUsage, "cannot be the sender"},
		{[]string{"client", "add", "--data", dir}, commandline.ExitUsage, "needs --name"},
		{[]string{"client", "add", "--name", "n", "--data", dir}, commandline.ExitUsage, "at least one --redirect-uri"},
		{[]string{"client", "rotate", "--data", dir}, commandline.ExitUsage, "needs the ID of a client"},
		{[]string{"client", "allow", "--data", dir}, commandline.ExitUsage, "needs a HOST"},
		{[]string{"client", "disallow", "--data", dir}, commandline.ExitUsage, "needs the HOST"},
		{[]string{"client", "list", "--data", dir + "/other"}, commandline.ExitNotRunning, "there is no control plane in " + dir},
		{[]string{"outbox", "--waiting", "--failed", "--data", dir}, commandline.ExitUsage, "not both"},
		{[]string{"serve", "--config", dir + "/none.yaml"}, commandline.ExitRefused, "cannot read the configuration"},
		{[]string{"restore", dir + "/none", "--data", dir}, commandline.ExitRefused, "cannot read the backup"},
		{[]string{"restore", dir + "/none"}, commandline.ExitUsage, "say where to put it"},
	} {
		code, out, err := invoke(t, nil, c.args...)
		if code != c.code || !strings.Contains("\n"+err, "\nporchlight-control: ") || !strings.Contains(err, c.want) || out != "" {
			t.Errorf("%s: exit %d, %q %q, want %d, %s", strings.Join(c.args, " "), code, out, err, c.code, c.want)
		}
		if _, made := os.Stat(filepath.Join(dir, "ca")); made == nil {
			t.Fatalf("%s: it made an authority before it refused", strings.Join(c.args, " "))
		}
		if strings.Contains(err, "hunter2") {
			t.Errorf("%s: the password is in %q", strings.Join(c.args, " "), err)
		}
	}
	if code, out, _ := invoke(t, nil, "version"); code != 0 || strings.TrimSpace(out) == "" {
		t.Errorf("version: exit %d, %q", code, out)
	}
}

// TestSettingsAreDescribed: docs/measured/settings.md is what the flags of serve say of
// themselves, which may be in the file and in the environment, too. With
// PORCHLIGHT_WRITE=1 it is written.
func TestSettingsAreDescribed(t *testing.T) {
	t.Parallel()
	page := "# Settings of a server\n\nWritten from the flags of `porchlight-control serve`. How they are given is in\n" +
		"[operating.md](../operating.md#settings).\n\n| setting | what it is |\n|---|---|\n"
	serveCommand(terminal{}).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == flagFile {
			return
		}
		usage := f.Usage
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		page += "| `" + f.Name + "` | " + usage + " |\n"
	})
	file := filepath.Join("..", "..", "..", "docs", "measured", "settings.md")
	if os.Getenv("PORCHLIGHT_WRITE") != "" {
		programs.Must(t, os.WriteFile(file, []byte(page), 0o644))
	}
	if kept := programs.Got(os.ReadFile(file))(t); string(kept) != page {
		t.Error("docs/measured/settings.md is out of date: PORCHLIGHT_WRITE=1 go test ./control/cmd/porchlight-control -run SettingsAreDescribed")
	}
	if _, err := parseConfig([]byte("security-contact: security@porch.example\n"), configurable()); err != nil {
		t.Error(err)
	}
}

// TestCredentials: a configuration names what systemd hands over, as the unit does,
// and is told where nothing is handed over.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	config := "data: " + filepath.Join(dir, "data") + "\ndomain: porch.localhost\nlisten: [\"127.0.0.1:0\"]\n" +
		"smtp: smtp://porchlight@mail.example:587\nsmtp-password-file: ${CREDENTIALS_DIRECTORY}/secrets_smtp-password\n"
	for name, content := range map[string]string{"control.yaml": config, "secrets_smtp-password": "two\nlines\n"} {
		programs.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	serve := []string{"serve", "--config", filepath.Join(dir, "control.yaml")}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if code, _, errOut := invoke(t, nil, serve...); code != commandline.ExitUsage || !strings.Contains(errOut, "LoadCredential") {
		t.Errorf("nothing handed over: exit %d, %s", code, errOut)
	}
	// It was read where systemd put it, because it is found to hold no password.
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	if code, _, errOut := invoke(t, nil, serve...); code != commandline.ExitUsage || !strings.Contains(errOut, filepath.Join(dir, "secrets_smtp-password")+" does not hold a password") {
		t.Errorf("handed over: exit %d, %s", code, errOut)
	}
	for name, want := range map[string]string{"": "", "/etc/x": "/etc/x", "${CREDENTIALS_DIRECTORY}/key.pem": filepath.Join(dir, "key.pem"), "x${CREDENTIALS_DIRECTORY}/y": "x${CREDENTIALS_DIRECTORY}/y"} {
		if got, err := handedOver(name, os.LookupEnv); err != nil || got != want {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
}
