package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"
	"unicode"

	"porchlight/test/programs"
)

// said is a place that says a sentence.
type said struct {
	where string
	args  int // put into it; -1 where that cannot be read
}

// sentencesAt is where in its arguments a call has sentences. Methods and functions of
// one name say sentences alike.
var sentencesAt = map[string][]int{
	"Say": {0}, "say": {0}, "Of": {0}, "Errorf": {0}, "rich": {0},
	"Count": {1, 2}, "count": {1, 2}, "Counted": {1, 2},
	"forbidden": {0}, "invalid": {0}, "refuse": {0},
}

// formats are the functions whose sentences are written for fmt. Those of the agent's
// refusals have a code before the sentence.
var formats = []string{"Errorf", "forbidden", "invalid", "refuse"}

// TestEverySentenceIsInEveryLanguage reads the sources for sentences that are said
// through this package, and holds every dictionary to them both ways.
func TestEverySentenceIsInEveryLanguage(t *testing.T) {
	t.Parallel()
	sentences, written := map[string][]said{}, map[string]bool{}
	for _, folder := range []string{"agent", "control", "desktop", "internal"} {
		readRoom(t, filepath.Join("..", "..", folder), sentences, written)
	}
	for _, month := range months {
		sentences[month] = []said{{"language.go", 0}}
	}
	for language, rooms := range dictionaries {
		known := map[string]string{}
		for _, folder := range rooms {
			for key, text := range folder {
				if before, twice := known[key]; twice && before != text {
					t.Errorf("%s says %q in two ways: %q and %q", language.Name(), key, before, text)
				}
				known[key] = text
			}
		}
		for _, key := range slices.Sorted(maps.Keys(sentences)) {
			text, ok := known[key]
			if !ok && !strings.ContainsFunc(verb.ReplaceAllString(key, ""), unicode.IsLetter) {
				continue // nothing to say in other words
			}
			if !ok {
				t.Errorf("%s: %q is not said in %s; write it into internal/words/", sentences[key][0].where, key, language.Name())
				continue
			}
			alike(t, key, text)
		}
		for key := range known {
			if len(sentences[key]) == 0 && !written[key] {
				t.Errorf("%s has %q, which nobody says", language.Name(), key)
			}
		}
	}
	for key, places := range sentences {
		for _, one := range places {
			if want := len(verbs(key)); one.args >= 0 && one.args < want {
				t.Errorf("%s: %q has %d verbs and %d arguments", one.where, key, want, one.args)
			}
		}
	}
}

var (
	verb = regexp.MustCompile(`%(?:\[(\d+)\])?([a-zA-Z%])`)
	mark = regexp.MustCompile(`<[^>]*>`)
	// harmless are the marks of HTML that a sentence may have.
	harmless = []string{"<b>", "</b>", "<i>", "</i>", "<bdi>", `<bdi dir="auto">`, "</bdi>", "<code>", "</code>", `<a href="%s">`, `<a href="%[1]s">`, `<a href="%[2]s">`, "</a>", `<button class="linkish">`, "</button>"}
)

// verbs are the placeholders of a format, by the argument they stand for.
func verbs(format string) map[int]string {
	out, next := map[int]string{}, 1
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[2] == "%" {
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		out[next] = m[2]
		next++
	}
	return out
}

// alike holds what a language says to the English: the same placeholders, marks and
// line, and quotes as people print them.
func alike(t *testing.T, key, text string) {
	t.Helper()
	if want, got := verbs(key), verbs(text); !maps.Equal(want, got) {
		t.Errorf("%q puts in %v, and %q %v", key, want, text, got)
	}
	want, got := mark.FindAllString(key, -1), mark.FindAllString(text, -1)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%q has the marks %q, and %q %q", key, want, text, got)
	}
	for _, m := range want {
		if !slices.Contains(harmless, m) && strings.Contains(key, "</") {
			t.Errorf("%q has the mark %s", key, m)
		}
	}
	if strings.TrimSpace(text) != text && strings.TrimSpace(key) == key || text == "" {
		t.Errorf("%q becomes %q", key, text)
	}
	if plain := mark.ReplaceAllString(text, ""); strings.ContainsAny(plain, "\"'”") && !strings.ContainsAny(key, "\"'") {
		t.Errorf("%q has other quotation marks than „ and “, or ’", text)
	}
}

// readRoom adds what the files below a directory say, and every text that is written in
// them: one that is told as the key of a sentence later is found by that alone.
func readRoom(t *testing.T, root string, into map[string][]said, written map[string]bool) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch {
		case filepath.Base(filepath.Dir(path)) == "words" && strings.HasPrefix(filepath.ToSlash(path), "../../internal/"):
			if filepath.Base(path) != "words.go" && filepath.Base(path) != "language.go" && filepath.Base(path) != "sentence.go" {
				return nil
			}
			return readGo(path, into, written, func(string, ...any) {})
		case strings.HasSuffix(filepath.ToSlash(path), "desktop/language/language.go"): // passes on what others say
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			return readGo(path, into, written, t.Errorf)
		case strings.HasSuffix(path, ".html"), strings.HasSuffix(path, ".txt") && strings.Contains(path, "templates"):
			return readTemplate(path, into, t.Errorf)
		}
		return nil
	})
	programs.Must(t, err)
}

func readGo(path string, into map[string][]said, written map[string]bool, complain func(string, ...any)) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := literal(e); ok {
				written[text], written[keyOf(text)] = true, true
			}
		}
		if field, ok := n.(*ast.KeyValueExpr); ok && refuses(path) {
			if name, ok := field.Key.(*ast.Ident); ok && name.Name == "Message" {
				refusal(field.Value, files, into)
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if fun, ok := call.Fun.(*ast.Ident); ok && slices.Contains(refusers, fun.Name) && refuses(path) && !ofAgent(path) {
			for _, arg := range call.Args {
				refusal(arg, files, into)
			}
		}
		name, of := called(call)
		if forOwner(path) && (of == "fmt" && name == "Errorf" || of == "errors" && name == "New") && len(call.Args) > 0 {
			if text, ok := literal(call.Args[0]); ok && !slices.Contains(unread, text) {
				complain("%s: %q is an error of the owner's; words.Errorf makes it", files.Position(call.Pos()), text)
			}
		}
		places := sentencesAt[name]
		if name == "Errorf" && of != "words" {
			places = []int{1}
		}
		if places == nil || !saysSo(path, name, of) || len(call.Args) <= places[len(places)-1] {
			return true
		}
		where := files.Position(call.Pos()).String()
		args := len(call.Args) - places[len(places)-1] - 1
		if len(places) == 2 {
			args++ // the number itself
		}
		if call.Ellipsis.IsValid() {
			args = -1
		}
		for _, one := range places {
			key, ok := literal(call.Args[one])
			if slices.Contains(formats, name) {
				key = keyOf(key)
			}
			if passed, isName := call.Args[one].(*ast.Ident); isName && passed.Name == "format" {
				continue // of whoever calls this function
			}
			if !ok && (slices.Contains(formats, name) || name == "Say" || name == "Of" || name == "Counted") {
				complain("%s: the sentence is not a constant, so nobody can tell which it is", where)
			}
			if ok {
				into[key] = append(into[key], said{where, args})
			}
		}
		return true
	})
	return nil
}

// forOwner says whether the errors that a file makes are sentences for the owner: why
// Porchlight cannot start, which the menu bar shows.
func forOwner(path string) bool {
	rooms := []string{"agent/host", "agent/local"}
	files := []string{
		"agent/agentapi/running.go", "agent/localapi/listen.go", "agent/ownersecret/file.go", "agent/ownersecret/ownersecret.go",
		"agent/store/migrate.go", "agent/store/store.go", "internal/localca/files.go",
	}
	path = strings.TrimPrefix(filepath.ToSlash(path), "../../")
	return slices.Contains(rooms, filepath.ToSlash(filepath.Dir(path))) || slices.Contains(files, path)
}

// unread are errors there that nobody reads: they are told apart by their value alone.
var unread = []string{"the socket is in use", "%w: %s"}

// refusers are functions whose text is a refusal, which has no arguments and so is its
// own key; so is that of a field Message.
var refusers = []string{"refuse", "invalid", "gone", "tooMany"}

// refuses says whether the refusals of a file are read by people, on a page or in the
// owner's window.
func refuses(path string) bool {
	return ofAgent(path) || inRoom(path, "control") || inRoom(path, "control/web") || inRoom(path, "control/controlapi")
}

// ofAgent says whether a file is one of the agent's. The command line is none: it speaks
// English.
func ofAgent(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/agent/") && !strings.Contains(filepath.ToSlash(path), "/agent/cmd/")
}

func inRoom(path, folder string) bool {
	return strings.HasSuffix(filepath.ToSlash(filepath.Dir(path)), "../"+folder)
}

func refusal(e ast.Expr, files *token.FileSet, into map[string][]said) {
	if text, ok := literal(e); ok && strings.HasSuffix(text, ".") {
		key := strings.ReplaceAll(text, "%", "%%")
		into[key] = append(into[key], said{files.Position(e.Pos()).String(), -1})
	}
}

// saysSo says whether a function of a name says sentences: those with short names do
// so only in the room that has them.
func saysSo(path, name, of string) bool {
	switch name {
	case "Of", "Counted":
		return of == "words"
	case "Errorf":
		return of == "words" || ofAgent(path) && of == "agentapi" || inRoom(path, "agent/agentapi") && of == ""
	case "forbidden", "invalid", "refuse":
		return inRoom(path, "agent/localapi")
	}
	return name == "Say" || name == "Count"
}

// called is what a call calls, and whose it is.
func called(call *ast.CallExpr) (name, of string) {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name, ""
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			of = x.Name
		}
		return fun.Sel.Name, of
	}
	return "", ""
}

// literal is the text of a constant, also of one in pieces.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

func readTemplate(path string, into map[string][]said, complain func(string, ...any)) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	funcs := map[string]any{"tell": fmt.Sprint}
	for name := range English.Funcs() {
		funcs[name] = fmt.Sprint
	}
	trees, err := parse.Parse(path, string(raw), "", "", funcs, builtins)
	if err != nil {
		return err
	}
	for _, tree := range trees {
		eachCommand(tree.Root, func(c *parse.CommandNode) {
			ident, ok := c.Args[0].(*parse.IdentifierNode)
			if !ok {
				return
			}
			places := sentencesAt[ident.Ident]
			for _, one := range places {
				key, ok := (*parse.StringNode)(nil), len(c.Args) > one+1
				if ok {
					key, ok = c.Args[one+1].(*parse.StringNode)
				}
				if !ok {
					complain("%s: %s is said, which is not a constant", path, c)
					continue
				}
				args := len(c.Args) - places[len(places)-1] - 2 + len(places) - 1
				into[key.Text] = append(into[key.Text], said{path, args})
			}
		})
	}
	return nil
}

// builtins are the functions that every template has.
var builtins = func() map[string]any {
	out := map[string]any{}
	for _, name := range []string{"and", "or", "not", "len", "index", "slice", "print", "printf", "println", "html", "js", "urlquery", "call", "eq", "ne", "lt", "le", "gt", "ge"} {
		out[name] = fmt.Sprint
	}
	return out
}()

// eachCommand calls f with every command of a template, those in brackets too.
func eachCommand(n parse.Node, f func(*parse.CommandNode)) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, below := range n.Nodes {
				eachCommand(below, f)
			}
		}
	case *parse.ActionNode:
		eachCommand(n.Pipe, f)
	case *parse.TemplateNode:
		eachCommand(n.Pipe, f)
	case *parse.IfNode:
		eachBranch(n.BranchNode, f)
	case *parse.RangeNode:
		eachBranch(n.BranchNode, f)
	case *parse.WithNode:
		eachBranch(n.BranchNode, f)
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, c := range n.Cmds {
			f(c)
			for _, arg := range c.Args {
				eachCommand(arg, f)
			}
		}
	}
}

func eachBranch(n parse.BranchNode, f func(*parse.CommandNode)) {
	eachCommand(n.Pipe, f)
	eachCommand(n.List, f)
	eachCommand(n.ElseList, f)
}

var months = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
