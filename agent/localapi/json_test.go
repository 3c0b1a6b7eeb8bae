package localapi

import (
	"encoding/json"
	"slices"
	"testing"

	"porchlight/agent/agentapi"
)

// A port is a number (docs/interface.md, Published apps), and JSON has one kind
// of it.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]int{
		"8000": 8000, "8000.0": 8000, "8e3": 8000, "8.0E+3": 8000, "0": 0, "-0": 0, "-1": -1, "9007199254740992": 1 << 53,
	} {
		f := parseFields([]byte(`{"n":`+written+`}`), "n")
		if n := f.integer("n"); f.err != nil || n != want {
			t.Errorf("%s: %d, %v", written, n, f.err)
		}
	}
	for _, written := range []string{"8000.5", "1e-1", "1e19", "1e400", "-1e400", `"8000"`, "true", "[]", "null", "1e9999999999"} {
		f := parseFields([]byte(`{"n":`+written+`}`), "n")
		if n := f.integer("n"); f.err == nil {
			t.Errorf("%s is taken for %d", written, n)
		}
	}
}

// FuzzPublishBody: whatever is accepted means the same to any other reader of
// the same JSON, and whatever is refused is refused with a sentence.
func FuzzPublishBody(f *testing.F) {
	for _, seed := range []string{
		`{"name":"notes","label":"Notes","localPort":8000}`,
		`{"name":"a","name":"b","label":"Notes","localPort":8000}`,
		`{"NAME":"a","name":"b","label":"Notes","localPort":8000}`,
		`{"na\u006de":"a","label":"\ud83d\ude00","localPort":1e3}`,
		`{"x":{"name":[1,{}]},"name":"notes","label":"Notes","localPort":-0}`,
		`{"name":"notes","label":"Notes","localPort":8000}{}`,
		`[]`, `null`, `{`, `{"name":`, "\xff", ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found := parseFields(raw, "name", "label", "localPort")
		name, label, port := found.text("name"), found.text("label"), found.integer("localPort")
		if err := found.err; err != nil {
			if agentapi.CodeOf(err) != agentapi.CodeInvalid || err.Error() == "" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		var req struct {
			Name, Label string
			LocalPort   float64 // a number, as JSON has it
		}
		if err := json.Unmarshal(raw, &req); err != nil {
			t.Fatalf("accepted, but another reader says %v", err)
		}
		if name != req.Name || label != req.Label || float64(port) != req.LocalPort {
			t.Fatalf("read %q, %q, %d, another reader %+v", name, label, port, req)
		}
	})
}

// FuzzPeopleBody is FuzzPublishBody for lists of texts, and for true and false.
func FuzzPeopleBody(f *testing.F) {
	for _, seed := range []string{
		`{"apps":["Notes","Wiki"],"granted":true}`,
		`{"apps":[],"granted":false}`,
		`{"apps":["Notes",null],"granted":true}`,
		`{"apps":[["Notes"]],"granted":1}`,
		`{"apps":{"0":"Notes"},"granted":"true"}`,
		`{"apps":null,"granted":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found := parseFields(raw, "apps", "granted")
		apps, granted := found.texts("apps"), found.truth("granted")
		if err := found.err; err != nil {
			if agentapi.CodeOf(err) != agentapi.CodeInvalid || err.Error() == "" {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		var other struct {
			Apps    []string `json:"apps"`
			Granted bool     `json:"granted"`
		}
		if err := json.Unmarshal(raw, &other); err != nil {
			t.Fatalf("accepted, but another reader says %v", err)
		}
		if !slices.Equal(apps, other.Apps) || granted != other.Granted {
			t.Fatalf("read %q %v, another reader %+v", apps, granted, other)
		}
	})
}
