package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"porchlight/test/programs"
)

func TestFaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module m\n\ngo 1.25\n",
		"control/a.go": `package control

type T[V any] struct{ field V }

func (T[V]) Told()       {}
func (T[V]) String() string { return "" }
func (t *T[V]) method()  { inner() }

type Teller interface{ String() string }

func inner()   {}
func Alone()   {}
func Outer()   { Within() }
func Within()  {}
func ForTest() {}
`,
		"control/a_test.go": "package control\n\nfunc own() { inner(); own(); t := T[int]{field: 1}; t.method(); t.Told() }\n",
		"control/x_test.go": "package control_test\n\nimport \"m/control\"\n\nfunc f() { control.ForTest(); f() }\n",
		"agent/b.go":        "package agent\n\nimport \"m/control\"\n\nfunc b(t control.T[int]) { control.Outer() }\n",
	} {
		file := filepath.Join(dir, name)
		programs.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		programs.Must(t, os.WriteFile(file, []byte(content), 0o644))
	}
	seen := programs.Got(look(dir))(t)
	if n := seen.behind["control"]; n != 3 {
		t.Errorf("%d uses, not inner, field and method", n)
	}
	if want := []string{"control.Alone", "control.Teller", "control.Within"}; !slices.Equal(seen.unused, want) {
		t.Errorf("used by no other package: %v, not %v", seen.unused, want)
	}
	if want := []string{"control.ForTest", "control.T.Told"}; !slices.Equal(seen.forTest, want) {
		t.Errorf("used by tests alone: %v, not %v", seen.forTest, want)
	}
}
