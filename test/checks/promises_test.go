package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"porchlight/test/programs"
)

var promise = regexp.MustCompile(`(?m)^- \*\*([A-Z][0-9]+)\*\* \S`)

// Every promise of docs/interface.md has a test in test/promises.txt, and every
// test named there is in the code. `make spec` runs them and writes the list.
func TestEveryPromiseHasATest(t *testing.T) {
	t.Parallel()
	page := programs.Got(os.ReadFile("../../docs/interface.md"))(t)
	list := programs.Got(os.ReadFile("../promises.txt"))(t)
	for _, wrong := range promisesBroken(t, string(page), string(list)) {
		t.Error(wrong)
	}
}

// The check above is worth something only if it sees what is wrong.
func TestAPromiseWithoutATestIsSeen(t *testing.T) {
	t.Parallel()
	page := "- **P1** The first.\n- **P2** The second.\n"
	here := " test/checks TestAPromiseWithoutATestIsSeen"
	for list, says := range map[string]string{
		"P1" + here + "\n":                            "P2 of docs/interface.md has no test",
		"P1" + here + "\nP2" + here + "\nP3" + here:   "P3 is no promise",
		"P1" + here + "\nP2 test/checks TestGone":     "TestGone is not in test/checks",
		"P1" + here + "\nP2" + here + "/P2_" + "gone": "P2_" + "gone is not in test/checks",
		"P1" + here + "\nP2 test/nowhere TestGone":    "TestGone is not in test/nowhere",
		"P1" + here + "\nP2" + here + "\n\n":          "no line of the list",
	} {
		wrong := promisesBroken(t, page, list)
		if len(wrong) != 1 || !strings.Contains(wrong[0], says) {
			t.Errorf("the list %q: %q, want one that says %q", list, wrong, says)
		}
	}
	if wrong := promisesBroken(t, page, "P1"+here+"\nP2"+here+"\n"); len(wrong) != 0 {
		t.Errorf("a whole list: %q", wrong)
	}
}

// promisesBroken says in sentences what is wrong between the promises, the list of
// their tests and the code.
func promisesBroken(t *testing.T, page, list string) (wrong []string) {
	t.Helper()
	ids := map[string]bool{} // whether the promise has a test
	for _, found := range promise.FindAllStringSubmatch(page, -1) {
		if _, twice := ids[found[1]]; twice {
			wrong = append(wrong, found[1]+" stands twice in docs/interface.md")
		}
		ids[found[1]] = false
	}
	named := map[string]map[string]bool{} // package → names in its tests
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) != 3 {
			wrong = append(wrong, "no line of the list: "+line)
			continue
		}
		id, dir, test := words[0], words[1], words[2]
		if _, known := ids[id]; !known {
			wrong = append(wrong, id+" is no promise of docs/interface.md")
			continue
		}
		ids[id] = true
		if named[dir] == nil {
			named[dir] = testNames(t, filepath.Join("..", "..", dir))
		}
		for name := range strings.SplitSeq(test, "/") {
			if !named[dir][name] {
				wrong = append(wrong, name+" is not in "+dir+", says "+strings.TrimSpace(line)+": run make spec")
				break
			}
		}
	}
	for id, tested := range ids {
		if !tested {
			wrong = append(wrong, id+" of docs/interface.md has no test in test/promises.txt: run make spec")
		}
	}
	return wrong
}

// testNames is what the tests in dir call themselves: their functions, and every
// string, among which are the names of subtests.
func testNames(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files := programs.Got(filepath.Glob(filepath.Join(dir, "*_test.go")))(t)
	names := map[string]bool{}
	for _, path := range files {
		file := programs.Got(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				if node.Recv == nil {
					names[node.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
					names[text] = true
				}
			}
			return true
		})
	}
	return names
}
