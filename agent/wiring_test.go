package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// wired is a method of Agent, as its text has it: the fields it sets and uses, and the
// methods it names, each with where that first is.
type wired struct {
	later bool // in later.go
	sets  map[string]token.Pos
	uses  map[string]token.Pos
}

// Weakness (HO9): parts were given closures over parts that were nil until later, and the
// text said that there are none.
// Checked: in the order of New, each step uses only what is made before it, by the methods
// it names, too. What is in later.go is excepted, and only there.
func TestPartsNeedOnlyEarlierOnes(t *testing.T) {
	t.Parallel()
	methods, files := map[string]*wired{}, token.NewFileSet()
	sources := programs.Got(os.ReadDir("."))(t)
	var order []string
	for _, source := range sources {
		if !strings.HasSuffix(source.Name(), ".go") || strings.HasSuffix(source.Name(), "_test.go") {
			continue
		}
		file := programs.Got(parser.ParseFile(files, source.Name(), nil, 0))(t)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			m := read(f.Body)
			m.later = source.Name() == "later.go"
			switch {
			case f.Name.Name == "New" && f.Recv == nil:
				order = steps(f.Body)
			case f.Recv != nil:
				methods[f.Name.Name] = m
			}
		}
	}
	parts := map[string]bool{} // fields that a step makes
	for _, step := range order {
		for field := range methods[step].sets {
			parts[field] = true
		}
	}
	if len(order) < 10 || len(parts) < 15 || !methods["gone"].later {
		t.Fatalf("steps %q, parts %v", order, parts)
	}
	made := map[string]bool{}
	for _, step := range order {
		seen := map[string]bool{}
		var follow func(name string, by *wired)
		follow = func(name string, by *wired) {
			for used, at := range by.uses {
				if set, here := methods[step].sets[used]; here && (name != step || set < at) || !parts[used] || made[used] {
					if m := methods[used]; m != nil && !m.later && !seen[used] {
						seen[used] = true
						follow(used, m)
					}
					continue
				}
				t.Errorf("%s: %s uses %s, which is made later", files.Position(at), step, used)
			}
		}
		follow(step, methods[step])
		for field := range methods[step].sets {
			made[field] = true
		}
	}
}

// steps are the methods that New calls, in their order.
func steps(body *ast.BlockStmt) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		if name := ofAgent(n); strings.HasPrefix(name, "make") || name == "openStore" || name == "listen" {
			names = append(names, name)
		}
		return true
	})
	return names
}

func read(body *ast.BlockStmt) *wired {
	m := &wired{sets: map[string]token.Pos{}, uses: map[string]token.Pos{}}
	set := map[ast.Node]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.AssignStmt); ok {
			for _, left := range s.Lhs {
				if name := ofAgent(left); name != "" {
					set[left], m.sets[name] = true, s.End()
				}
			}
		}
		if name := ofAgent(n); name != "" && !set[n] && m.uses[name] == token.NoPos {
			m.uses[name] = n.Pos()
		}
		return true
	})
	return m
}

// ofAgent is the name in a.name.
func ofAgent(n ast.Node) string {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "a" {
			return s.Sel.Name
		}
	}
	return ""
}
