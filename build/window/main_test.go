package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

const loopback = "../../docs/openapi/loopback.yaml"

func TestWhatIsWrittenDownIsUpToDate(t *testing.T) {
	t.Parallel()
	files, err := generate(loopback)
	programs.Must(t, err)
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join("../..", name)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what docs/openapi and desktop/ui say (%v). Run: go generate ./desktop/ui", name, err)
		}
	}
}

// An option or setting that the agent tells of can be changed, too.
func TestEveryChoiceCanBeChanged(t *testing.T) {
	t.Parallel()
	spec, err := read(loopback)
	programs.Must(t, err)
	for path, schema := range map[string]string{"/owner/apps/{name}/options": "AppOptions", "/owner/settings": "Settings"} {
		patch := spec.Paths.Value(path).Patch.RequestBody.Value.Content["application/json"].Schema.Value
		if all := ordered(spec.Components.Schemas[schema].Value.Properties); !slices.Equal(ordered(patch.Properties), all) {
			t.Errorf("%s: of %q can be changed %q", path, all, ordered(patch.Properties))
		}
	}
}

func TestMarksThatMakeNoSense(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(loopback)
	programs.Must(t, err)
	for what, change := range map[string][2]string{
		"another tier":  {"operationId: publish\n", "operationId: publish\n      x-window: true\n"},
		"events":        {"operationId: ownerEvents\n", "operationId: ownerEvents\n      x-window: true\n"},
		"another word":  {"x-window: never", "x-window: seldom"},
		"switched off":  {"operationId: deny\n      x-window: true", "operationId: deny\n      x-window: false"},
		"two of a name": {"                alone: {type: boolean,", "                name: {type: boolean,"},
		"no name":       {"$ref: '#/components/schemas/MadePassword'", "type: object"},
		"an object":     {"                grantId: {type: string,", "                grantId: {type: object,"},
	} {
		file := filepath.Join(t.TempDir(), "changed.yaml")
		changed := strings.Replace(string(raw), change[0], change[1], 1)
		if changed == string(raw) {
			t.Errorf("%s: nothing was changed", what)
		}
		programs.Must(t, os.WriteFile(file, []byte(changed), 0o600))
		if _, err := generate(file); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// The fields of what the window is told are those of the Go type the agent answers
// with, no more and no fewer, and may be left out where Go leaves them out.
func TestFieldsAreThoseOfGo(t *testing.T) {
	t.Parallel()
	spec, err := read(loopback)
	programs.Must(t, err)
	for _, of := range []any{
		agentapi.OwnerState{}, agentapi.OwnerApp{}, agentapi.Listener{}, agentapi.Certificate{}, agentapi.AppOptions{}, agentapi.Account{},
		agentapi.Notice{}, agentapi.Grant{}, agentapi.Registrant{}, agentapi.LocalUser{}, agentapi.Connecting{}, agentapi.Person{},
		agentapi.People{}, agentapi.Invitation{}, agentapi.PersonChanged{}, agentapi.Visitor{}, agentapi.Activity{}, agentapi.Settings{},
		agentapi.Closed{}, agentapi.Done{}, agentapi.Mail{}, agentapi.AppPassword{}, agentapi.VisitorRequests{}, agentapi.VisitorRequest{},
		agentapi.AppHealth{},
	} {
		goType := reflect.TypeOf(of)
		schema := spec.Components.Schemas[goType.Name()].Value
		var described, written []string
		for _, name := range ordered(schema.Properties) {
			described = append(described, name+optional(slices.Contains(schema.Required, name))+": "+jsonOf(schema.Properties[name].Value))
		}
		for _, f := range reflect.VisibleFields(goType) {
			if name, rest, tagged := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				written = append(written, name+optional(!tagged || rest == "")+": "+jsonKind(f.Type))
			}
		}
		slices.Sort(described)
		if slices.Sort(written); !slices.Equal(described, written) {
			t.Errorf("%s is described with %q, and has %q", goType, described, written)
		}
	}
}

func jsonOf(s *openapi3.Schema) string {
	if s.AllOf != nil {
		return "object"
	}
	return s.Type.Slice()[0]
}

func jsonKind(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return jsonKind(of.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "array"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Map:
		return "object"
	case reflect.Struct:
		if of.Name() != "Time" {
			return "object"
		}
	}
	return "string"
}
