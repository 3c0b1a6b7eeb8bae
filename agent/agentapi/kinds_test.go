package agentapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// TestKindsListsEveryConstant: a kind that is not listed could not be switched off.
func TestKindsListsEveryConstant(t *testing.T) {
	t.Parallel()
	file := programs.Got(parser.ParseFile(token.NewFileSet(), "kinds.go", nil, 0))(t)
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Kind") {
			value := programs.Got(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
			declared = append(declared, value)
		}
		return true
	})
	var listed []string
	for _, k := range Kinds() {
		if k.About == "" {
			t.Errorf("nobody is told what %q is about", k.Name)
		}
		listed = append(listed, k.Name)
	}
	if got, want := strings.Join(listed, " "), strings.Join(declared, " "); got != want || len(declared) == 0 {
		t.Errorf("listed are %q, declared %q", got, want)
	}
}
