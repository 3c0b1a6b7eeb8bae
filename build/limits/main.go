// Command limits writes docs/measured/limits.md: the bounds that stand in the code, with what their
// comments say of them.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rooms are the packages whose constants bound something, in the order of the page.
var rooms = []struct{ dir, title string }{
	{"agent/proxy/limits", "A visitor's connection, at your computer"},
	{"agent/proxy", "Visitors and apps"},
	{"agent/access", "Sessions"},
	{"agent/identity", "Tokens for apps"},
	{"agent/requests", "The last requests"},
	{"agent/senders", "Named senders"},
	{"agent/engine", "Apps that ask"},
	{"agent/people", "People and groups"},
	{"agent/localapi", "Programs of your computer"},
	{"control/relay", "The relay"},
	{"control/relay/clienthello", "A visitor's first message"},
	{"control/relay/peers", "Between nodes"},
	{"control/controlapi/tunnelwire", "The tunnel"},
	{"control", "The control plane"},
	{"control/kv", "The store"},
	{"control/news", "Messages between nodes"},
	{"control/zone", "Questions about names (DNS)"},
}

// bound matches the names of constants that bound something for whoever asks; in a package
// called limits all do.
var bound = regexp.MustCompile(`^(?i:max|most|keep)|(Life|Most|PerSource)$`)

const head = `# Limits

Written from the code by ` + "`go generate ./build/limits`" + `: bounds on what others can have of a program, with what their comments say
and tests that name them. What they are for is in [security.md](../security.md#what-a-connection-may-cost), what an operator can set
in [operating.md](../operating.md#limits).
`

//go:generate go run porchlight/build/limits ../../docs/measured/limits.md
func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "limits: want the file to write")
		os.Exit(2)
	}
	page, err := write(filepath.Join("..", ".."))
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

// write is the page, of the repository at root.
func write(root string) (string, error) {
	in := &source{root: root, fset: token.NewFileSet(), known: map[string]*types.Package{}, info: &types.Info{Defs: map[*ast.Ident]types.Object{}}}
	if err := in.readTests(); err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString(head)
	for _, room := range rooms {
		files, err := in.parse(room.dir)
		if err != nil {
			return "", err
		}
		if _, err := in.check(room.dir, files); err != nil {
			return "", err
		}
		fmt.Fprintf(&page, "\n## %s\n\nIn `%s`:\n\n| | limit | | tests |\n|---|---|---|---|\n", room.title, room.dir)
		for _, file := range files {
			for _, decl := range file.Decls {
				if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
					in.rows(&page, room.dir, group)
				}
			}
		}
	}
	return page.String(), nil
}

// source reads packages of this module.
type source struct {
	root  string
	fset  *token.FileSet
	known map[string]*types.Package
	info  *types.Info
	tests map[string][]string // of the constants they name, by folder and name
}

// readTests notes which constants the repository's tests name.
func (in *source) readTests() error {
	in.tests = map[string][]string{}
	return filepath.WalkDir(in.root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(in.root, filepath.Dir(name)) // below root
		for _, decl := range file.Decls {
			if test, ok := decl.(*ast.FuncDecl); ok && test.Recv == nil && strings.HasPrefix(test.Name.Name, "Test") {
				in.readTest(filepath.ToSlash(folder), file, test)
			}
		}
		return nil
	})
}

func (in *source) readTest(folder string, file *ast.File, test *ast.FuncDecl) {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		if dir, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, "\""), "porchlight/"); ours {
			imported[path.Base(dir)] = dir
		}
	}
	names := func(dir, name string) {
		key := dir + " " + name
		if !slices.Contains(in.tests[key], test.Name.Name) {
			in.tests[key] = append(in.tests[key], test.Name.Name)
		}
	}
	ast.Inspect(test.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			if from, ok := node.X.(*ast.Ident); ok && imported[from.Name] != "" {
				names(imported[from.Name], node.Sel.Name)
			}
		case *ast.Ident:
			names(folder, node.Name)
		}
		return true
	})
}

// parse reads a package's files for this system without its tests.
func (in *source) parse(dir string) (files []*ast.File, err error) {
	names, err := filepath.Glob(filepath.Join(in.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if base := strings.TrimSuffix(name, ".go"); strings.HasSuffix(base, "_test") || strings.HasSuffix(base, "_darwin") || strings.HasSuffix(base, "_windows") {
			continue
		}
		file, err := parser.ParseFile(in.fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no source", dir)
	}
	return files, nil
}

// check finds the values of a package's constants. Whatever else does not resolve is none of
// its business: bodies are not looked at.
func (in *source) check(dir string, files []*ast.File) (*types.Package, error) {
	conf := types.Config{Importer: in, IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}}
	pkg, _ := conf.Check(path.Join("porchlight", dir), in.fset, files, in.info)
	return pkg, nil
}

// Import is for what constants are made of: this module's packages, and of the standard
// library the units of time. Others are empty.
func (in *source) Import(name string) (*types.Package, error) {
	if pkg := in.known[name]; pkg != nil {
		return pkg, nil
	}
	pkg := types.NewPackage(name, path.Base(name))
	pkg.MarkComplete()
	var err error
	if dir, ours := strings.CutPrefix(name, "porchlight/"); ours {
		in.known[name] = pkg // a circle ends here
		var files []*ast.File
		if files, err = in.parse(dir); err == nil {
			pkg, err = in.check(dir, files)
		}
	} else if name == "time" {
		addDurations(pkg)
	}
	in.known[name] = pkg
	return pkg, err
}

func addDurations(time *types.Package) {
	name := types.NewTypeName(token.NoPos, time, "Duration", nil)
	duration := types.NewNamed(name, types.Typ[types.Int64], nil)
	time.Scope().Insert(name)
	for unit, of := range units {
		time.Scope().Insert(types.NewConst(token.NoPos, time, unit, duration, constant.MakeInt64(int64(of))))
	}
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// rows writes what a group of constants bounds, of those that say something.
func (in *source) rows(page *strings.Builder, dir string, group *ast.GenDecl) {
	if path.Base(dir) == "limits" && len(group.Specs) > 1 {
		fmt.Fprintf(page, "| | | *%s* | |\n", strings.TrimSuffix(said(group.Doc), "."))
	}
	for _, spec := range group.Specs {
		spec := spec.(*ast.ValueSpec)
		comment := cmp.Or(said(spec.Comment), said(spec.Doc))
		if len(group.Specs) == 1 {
			comment = cmp.Or(comment, said(group.Doc))
		}
		for i, name := range spec.Names {
			c, ok := in.info.Defs[name].(*types.Const)
			if !ok || i >= len(spec.Values) || path.Base(dir) != "limits" && (comment == "" || !bound.MatchString(name.Name)) {
				continue
			}
			if value := shown(c, spec.Values[i]); value != "" {
				tests := in.tests[dir+" "+name.Name]
				fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", name.Name, value, ownName(comment, name.Name), strings.Join(tests[:min(len(tests), 2)], ", "))
			}
		}
	}
}

// ownName takes away that a comment begins with the name that stands beside it.
func ownName(comment, name string) string {
	for _, verb := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(comment, name+verb); ok {
			return strings.TrimSuffix(rest, ".")
		}
	}
	return strings.TrimSuffix(comment, ".")
}

// said is a comment as one line of a table.
func said(comment *ast.CommentGroup) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(comment.Text()), " "), "|", "\\|")
}

// shown is a number as people write it, and empty for what is none.
func shown(c *types.Const, expr ast.Expr) string {
	n, exact := constant.Int64Val(constant.ToInt(c.Val()))
	if c.Val().Kind() == constant.String || !exact || n == 0 {
		return ""
	}
	if c.Type().String() == "time.Duration" {
		return span(time.Duration(n))
	}
	shift, _ := expr.(*ast.BinaryExpr)
	switch {
	case shift != nil && shift.Op == token.SHL && n%(1<<20) == 0:
		return fmt.Sprintf("%d Mi", n>>20)
	case shift != nil && shift.Op == token.SHL && n%(1<<10) == 0:
		return fmt.Sprintf("%d Ki", n>>10)
	}
	return fmt.Sprint(n)
}

func span(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if d%unit.of == 0 && (d != 24*time.Hour || unit.of == time.Hour) {
			return fmt.Sprintf("%d %s", d/unit.of, unit.name)
		}
	}
	return d.String()
}
