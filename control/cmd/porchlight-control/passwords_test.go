package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestSMTPPassword(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "password")
		programs.Must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	env := func(value string) func(string) (string, bool) {
		return func(name string) (string, bool) { return value, name == envSMTPPassword && value != "" }
	}
	for _, c := range []struct{ file, env, want string }{
		{"", "", ""},
		{"", "from env", "from env"},
		{file("pass word\n"), "", "pass word"},
		{file("password\r\n"), "", "password"},
		{file("password"), "", "password"},
		{file(" password \n"), "", " password "},
	} {
		if got, err := smtpPassword(c.file, env(c.env)); err != nil || got != c.want {
			t.Errorf("%+v: %q %v", c, got, err)
		}
	}
	for what, c := range map[string]struct{ file, env string }{
		"a file that is not there": {filepath.Join(t.TempDir(), "none"), ""},
		"an empty file":            {file(""), ""},
		"an empty line":            {file("\n"), ""},
		"two lines":                {file("secret\nsecret\n"), ""},
		"a large file":             {file(strings.Repeat("secret", 1000)), ""},
		"two passwords":            {file("secret"), "secret"},
	} {
		if got, err := smtpPassword(c.file, env(c.env)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q %v", what, got, err)
		}
	}
}

func TestPasswordsInArgv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		smtp, postgres string
		want           []string
	}{
		{"", "", nil},
		{"smtp://u@mail.example", "postgres://u@db.example/x", nil},
		{"smtp://u:p@mail.example", "", []string{"smtp"}},
		{"", "postgres://u:p@db.example/x", []string{"postgres"}},
		{"", "postgres://u@db.example/x?password=p", []string{"postgres"}},
		{"", "postgres://u@db1:5432,db2:5433/x", nil},
		{"", "postgres://u:p@db1:5432,db2:5433/x", []string{"postgres"}},
		{"", "postgres://u@db1,db2/x?password=p", []string{"postgres"}},
		{"", "host=db1,db2 user=u password=p", []string{"postgres"}},
		{"smtp://u:p%zz@mail.example", "", []string{"smtp"}},
	} {
		var w where
		w.Mail.SMTP, w.Postgres = c.smtp, c.postgres
		if got := w.passwordsInArgv(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Every verb has a sentence and its flags have, too.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{
		"", "serve", "account", "account add", "account list", "account recover", "account remove", "client", "client add", "client list", "client rotate", "client remove", "client allow", "client disallow",
		"computer", "computer list", "computer disconnect", "computer remove", "key", "key list", "key rotate", "outbox", "ca",
		"backup", "restore", "export", "import", "version",
	} {
		code, out, err := invoke(t, nil, append(strings.Fields(verb), "--help")...)
		if code != 0 || err != "" || !strings.Contains(out, "Usage:") || len(out) < 100 {
			t.Errorf("%s --help: exit %d, %q %q", verb, code, out, err)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[0], "--") && len(fields) < 4 {
				t.Errorf("%s --help: a flag says nothing: %q", verb, line)
			}
		}
	}
}
