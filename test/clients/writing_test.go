//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?ms)^```(sh|json)\n(.*?)^```$")

// TestWritingAnApp types what docs/writing-an-app.md says to type, in one shell
// from top to bottom, and holds the answers to those that it shows.
func TestWritingAnApp(t *testing.T) {
	h := emptyHouse(t)
	var script strings.Builder
	script.WriteString("set -eu\nset -o pipefail\n")
	var shown []string // answer to each command, or ""
	for _, m := range block.FindAllStringSubmatch(read(t, "../../docs/writing-an-app.md"), -1) {
		if m[1] == "json" {
			if len(shown) == 0 || shown[len(shown)-1] != "" {
				t.Fatalf("an answer to nothing: %s", m[2])
			}
			shown[len(shown)-1] = m[2]
			continue
		}
		shown = append(shown, "")
		fmt.Fprintf(&script, "%s\nprintf '\\n%%s\\n' %q\n", m[2], marker)
	}
	typed := strings.NewReplacer(
		"127.0.0.1:8765", h.agent.Running.API,
		`"localPort": 8000`, `"localPort": `+strconv.Itoa(portOf(startApp(t))),
	).Replace(script.String())

	cmd := exec.CommandContext(t.Context(), "bash", "-c", typed)
	cmd.Env = append(h.env, "PATH="+binDir(t)+string(filepath.ListSeparator)+"/usr/bin:/bin")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v, after\n%s", err, out)
	}
	answers := strings.Split(string(out), marker+"\n")
	if len(shown) < 10 || len(answers) != len(shown)+1 {
		t.Fatalf("%d answers to %d commands", len(answers)-1, len(shown))
	}
	for i, want := range shown {
		if want == "" {
			continue
		}
		var a, b any
		if err := json.Unmarshal([]byte(want), &a); err != nil {
			t.Fatalf("%v in %s", err, want)
		}
		if err := json.Unmarshal([]byte(answers[i]), &b); err != nil {
			t.Fatalf("command %d answered %q: %v", i+1, answers[i], err)
		}
		if problem := differs("", a, b); problem != "" {
			t.Errorf("command %d: %s\nshown:    %s\nanswered: %s", i+1, problem, want, answers[i])
		}
	}
}

// marker ends the output of each command.
const marker = "-- end of a command --"

// literal fields have the same value on every computer.
var literal = map[string]bool{
	"ok": true, "status": true, "role": true, "appId": true, "protocol": true, "registrants": true, "heartbeatSeconds": true,
	"connected": true, "mode": true, "firstPartyApp": true, "publishedApps": true, "closed": true, "pendingApps": true, "dark": true,
}

// differs says where two answers differ: in the fields there are, in their
// types, or in a literal value. It is empty when they do not.
func differs(at string, shown, got any) string {
	switch shown := shown.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return at + " is no object"
		}
		for name := range got {
			if _, ok := shown[name]; !ok {
				return at + "/" + name + " is not shown"
			}
		}
		for name, value := range shown {
			if _, ok := got[name]; !ok {
				return at + "/" + name + " is not there"
			}
			if literal[name] && fmt.Sprint(value) != fmt.Sprint(got[name]) {
				return fmt.Sprintf("%s/%s is %v", at, name, got[name])
			}
			if problem := differs(at+"/"+name, value, got[name]); problem != "" {
				return problem
			}
		}
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(shown) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		for i := range shown {
			if problem := differs(fmt.Sprintf("%s/%d", at, i), shown[i], got[i]); problem != "" {
				return problem
			}
		}
	default:
		if fmt.Sprintf("%T", shown) != fmt.Sprintf("%T", got) {
			return fmt.Sprintf("%s is %v", at, got)
		}
	}
	return ""
}
