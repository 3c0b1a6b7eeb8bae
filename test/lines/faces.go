package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// faces is how the rooms of the product are reached: by what they export, or behind it.
type faces struct {
	behind  map[string]int // by room, how often its own tests use what it does not export
	unused  []string       // exported, and no other package uses it
	forTest []string       // exported, and nothing but tests uses it
}

// use is who uses a name.
type use struct{ within, beyond, tested bool }

// look reads the packages of a tree, with what only the tags of tests build.
func look(dir string) (seen faces, err error) {
	found, err := packages.Load(&packages.Config{
		Mode:       packages.LoadSyntax | packages.NeedModule | packages.NeedForTest,
		Dir:        dir,
		Tests:      true,
		BuildFlags: []string{"-tags=rig,clients,docs"},
	}, "./...")
	if err != nil {
		return seen, err
	}
	if n := packages.PrintErrors(found); n > 0 {
		return seen, fmt.Errorf("%d errors in the packages", n)
	}
	seen.behind = map[string]int{}
	answers := answering(found)
	exported, uses := map[string]string{}, map[string]*use{} // by where a name is declared
	for _, p := range found {
		// A package with tests is here twice: as it is, and with those that are inside it.
		alone, of := p.ForTest == "", strings.TrimSuffix(p.PkgPath, "_test")
		if strings.HasSuffix(p.PkgPath, ".test") || !alone && p.ForTest != of {
			continue
		}
		room, inside := strings.CutPrefix(of, p.Module.Path+"/")
		if !inside {
			room = "main.go"
		}
		tool := strings.HasPrefix(room, "test/") || strings.HasSuffix(room, "test")
		ours := isProduct(room) && !tool // kvtest and the like are there for tests
		file := func(n interface{ Pos() token.Pos }) string { return p.Fset.Position(n.Pos()).Filename }
		place := func(o types.Object) string {
			position := p.Fset.Position(o.Pos())
			return fmt.Sprintf("%s/%s:%d:%d", o.Pkg().Path(), path.Base(position.Filename), position.Line, position.Column)
		}
		for _, o := range p.TypesInfo.Defs {
			if name := face(o, answers); name != "" && alone && ours {
				exported[place(o)] = room + "." + name
			}
		}
		for _, f := range p.Syntax {
			test := strings.HasSuffix(file(f), "_test.go")
			if alone == test {
				continue
			}
			for n := range ast.Preorder(f) {
				id, ok := n.(*ast.Ident)
				if !ok {
					continue
				}
				o := origin(p.TypesInfo.Uses[id])
				if o == nil || o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), p.Module.Path) {
					continue
				}
				if !o.Exported() {
					if test && ours && o.Pkg() == p.Types && !isLocal(o) && !strings.HasSuffix(file(o), "_test.go") {
						seen.behind[room]++
					}
					continue
				}
				u := uses[place(o)]
				if u == nil {
					u = &use{}
					uses[place(o)] = u
				}
				other := o.Pkg() != p.Types
				u.tested = u.tested || test || tool
				u.within = u.within || !test && !other
				u.beyond = u.beyond || !test && other && !tool
			}
		}
	}
	for position, name := range exported {
		switch u := uses[position]; {
		case u == nil || !u.beyond && !u.tested:
			seen.unused = append(seen.unused, name)
		case !u.within && !u.beyond:
			seen.forTest = append(seen.forTest, name)
		}
	}
	slices.Sort(seen.unused)
	slices.Sort(seen.forTest)
	return seen, nil
}

// answering is the names of the methods that some interface has: whose uses cannot be seen.
func answering(found []*packages.Package) map[string]bool {
	names := map[string]bool{"Error": true}
	add := func(t types.Type) {
		if i, ok := t.Underlying().(*types.Interface); ok {
			for m := range i.Methods() {
				names[m.Name()] = true
			}
		}
	}
	for _, p := range found {
		for _, of := range p.Imports {
			for _, name := range of.Types.Scope().Names() {
				add(of.Types.Scope().Lookup(name).Type())
			}
		}
		for e, t := range p.TypesInfo.Types {
			if _, ok := e.(*ast.InterfaceType); ok {
				add(t.Type)
			}
		}
	}
	return names
}

// face is the name of what a package exports in its own scope, or as a method of such a
// type, and "" of the rest: fields, and methods by which something answers an interface.
func face(o types.Object, answers map[string]bool) string {
	if o == nil || !o.Exported() || isLocal(o) {
		return ""
	}
	switch o := o.(type) {
	case *types.Var:
		if o.IsField() {
			return ""
		}
	case *types.Func:
		if recv := o.Signature().Recv(); recv != nil {
			of := recv.Type()
			if p, ok := of.(*types.Pointer); ok {
				of = p.Elem()
			}
			n, ok := of.(*types.Named)
			if !ok || !n.Obj().Exported() || answers[o.Name()] {
				return ""
			}
			return n.Obj().Name() + "." + o.Name()
		}
	}
	return o.Name()
}

// origin is what was declared, where an instance of something generic is used.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// isLocal is whether something is neither declared in its package's own scope nor a
// method or a field.
func isLocal(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		if o.IsField() {
			return false
		}
	case *types.Func:
		if o.Signature().Recv() != nil {
			return false
		}
	}
	return o.Parent() != o.Pkg().Scope()
}

// names prints what the numbers are made of.
func (seen faces) names(w io.Writer) {
	for _, room := range slices.SortedFunc(maps.Keys(seen.behind), func(a, b string) int {
		return cmp.Or(seen.behind[b]-seen.behind[a], strings.Compare(a, b))
	}) {
		fmt.Fprintf(w, "behind %s: %d\n", room, seen.behind[room])
	}
	for _, name := range seen.unused {
		fmt.Fprintln(w, "used by no other package:", name)
	}
	for _, name := range seen.forTest {
		fmt.Fprintln(w, "used by tests alone:", name)
	}
}
