package listening

import (
	"testing"

	"porchlight/agent/agentapi"
)

func TestOtherProtocols(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		port    int
		program string
		want    string
	}{
		{22, "sshd", agentapi.NotOfferedLogin},
		{5432, "postgres", agentapi.NotOfferedDatabase},
		{15432, "postgres", agentapi.NotOfferedDatabase}, // by its name
		{5432, "something", agentapi.NotOfferedDatabase}, // by its number
		{53, "systemd-resolved", agentapi.NotOfferedNames},
		{631, "cupsd", agentapi.NotOfferedPrinting},
		{25, "", agentapi.NotOfferedMail},
		{6010, "", agentapi.NotOfferedScreen},
		{5901, "Xtigervnc", agentapi.NotOfferedScreen},
		{6379, "REDIS-SERVER.exe", agentapi.NotOfferedDatabase},
		{9229, "node", agentapi.NotOfferedControl},
		{80, "nginx", agentapi.NotOfferedSystem},
		{1023, "x", agentapi.NotOfferedSystem},
		{1024, "x", ""}, {3000, "node", ""}, {8000, "python3.11", ""}, {8888, "jupyter-lab", ""}, {65535, "", ""},
	} {
		if got := other(tt.port, tt.program); got != tt.want {
			t.Errorf("%d, %s: %q, want %q", tt.port, tt.program, got, tt.want)
		}
	}
}

func TestProgramsThatSayWhatTheyServe(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"grafana": "Grafana", "syncthing": "Syncthing", "jupyter-lab": "Jupyter-lab", "étagère": "Étagère",
		"python3": "", "python3.11": "", "node": "", "node18": "", "ruby2.7": "", "": "", "42": "", "docker-proxy": "", "php-fpm8.2": "",
	} {
		if got := named(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	long := "0123456789"
	for range 4 {
		long += long
	}
	for title, want := range map[string]string{
		"Notes":                           "Notes",
		"  My \n\t Notes  ":               "My Notes",
		"<b>Notes</b>":                    "<b>Notes</b>",
		"a\x00b\x1bc\u202ed\u2066e\u200b": "abcde",
		"\xff\xfeNotes":                   "Notes",
		"":                                "",
		"\u200b \u202e":                   "",
		"Directory listing for /":         "",
		"Index of /home":                  "",
		"Documents of mine":               "Documents of mine",
		"日記":                              "日記",
		long:                              long[:79] + "…",
	} {
		if got := shown(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}
