// Command lines measures the repository: how much Go there is, how it reads, and how many
// words the papers have. It prints that of one commit beside that of the files that are
// here, and keeps it where -keep says.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
)

// tangled is from which cyclomatic complexity on a function counts as complex.
const tangled = 16

// goFiles is what there is of Go files of one kind.
type goFiles struct{ lines, code, comment, funcs, funcLines, complex int }

// measured is what there is in one tree.
type measured struct {
	product, generated, tests, tools goFiles // tools is the Go of test/ that is no test
	words                            int
	made                             []string // the generated files
	*faces                                    // nil of a commit: that would have to be built
}

func main() {
	log.SetFlags(0)
	since := flag.String("since", "", "the `commit` to measure beside what is here")
	keep := flag.String("keep", "", "the `file` that keeps the table")
	names := flag.Bool("names", false, "print the names that are used behind a face, or by nobody")
	flag.Parse()
	columns := []string{*since, "now"}
	var all []measured
	for _, commit := range []string{*since, ""} {
		m, err := measure(commit)
		if err != nil {
			log.Fatal(err)
		}
		if commit == "" {
			seen, err := look(".")
			if err != nil {
				log.Fatal(err)
			}
			if *names {
				seen.names(os.Stdout)
			}
			m.faces = &seen
		}
		all = append(all, m)
	}
	show(os.Stdout, columns, all)
	if *keep != "" {
		if err := os.WriteFile(*keep, page(columns, all), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// measure reads the files of a commit, or, without one, those that git knows as they are.
func measure(commit string) (m measured, err error) {
	add := func(name string, content []byte) error { return m.add(name, content) }
	if commit == "" {
		out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
		if err != nil {
			return m, fmt.Errorf("which files there are: %w", err)
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			content, err := os.ReadFile(name)
			if errors.Is(err, os.ErrNotExist) {
				continue // removed, and git was not told
			}
			if err := errors.Join(err, add(name, content)); err != nil {
				return m, err
			}
		}
		return m, nil
	}
	out, err := exec.Command("git", "archive", commit).Output()
	if err != nil {
		return m, fmt.Errorf("the commit %s is not in this clone, so it cannot be measured: git fetch --unshallow", commit)
	}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err := errors.Join(err, add(h.Name, content)); err != nil {
			return m, err
		}
	}
}

// add counts a file in.
func (m *measured) add(name string, content []byte) error {
	top, _, _ := strings.Cut(name, "/")
	switch {
	case path.Ext(name) == ".md" && !strings.HasPrefix(name, "docs/measured/"):
		m.words += len(strings.Fields(string(content)))
	case path.Ext(name) != ".go" || strings.Contains(name, "/testdata/"):
	case strings.HasPrefix(name, "desktop/tray/systray/"): // others' code, a module of its own
	case strings.HasSuffix(name, "_test.go"):
		return m.tests.add(name, content)
	case top == "test":
		return m.tools.add(name, content)
	case !isProduct(name):
	case bytes.HasPrefix(content, []byte("// Code generated ")):
		m.made = append(m.made, name)
		return m.generated.add(name, content)
	default:
		return m.product.add(name, content)
	}
	return nil
}

// isProduct is whether a file or a package is part of what people run.
func isProduct(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return slices.Contains([]string{"agent", "control", "desktop", "internal", "assets", "main.go"}, top)
}

func (g *goFiles) add(name string, content []byte) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, content, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			g.funcs++
			g.funcLines += set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
			if branches(f) >= tangled {
				g.complex++
			}
		}
	}
	code, comment := map[int]bool{}, map[int]bool{}
	var s scanner.Scanner
	file := set.AddFile(name, -1, len(content))
	s.Init(file, content, nil, scanner.ScanComments)
	for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
		if tok == token.SEMICOLON && text == "\n" {
			continue // put in by the scanner
		}
		of := code
		if tok == token.COMMENT {
			of = comment
		}
		for i := range strings.Count(text, "\n") + 1 {
			of[file.Line(pos)+i] = true
		}
	}
	maps.DeleteFunc(comment, func(line int, _ bool) bool { return code[line] })
	g.lines += bytes.Count(content, []byte("\n"))
	g.code += len(code)
	g.comment += len(comment)
	return nil
}

// branches is the cyclomatic complexity of a function, with those within it.
func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// rows is the table, a row each.
func rows(all []measured) (rows [][]string) {
	row := func(name string, value func(m measured) string) {
		r := []string{name}
		for _, m := range all {
			r = append(r, value(m))
		}
		rows = append(rows, r)
	}
	number := func(name string, value func(m measured) int) {
		row(name, func(m measured) string { return fmt.Sprint(value(m)) })
	}
	number("product Go, lines without comments and blanks", func(m measured) int { return m.product.code })
	number("product Go, all lines", func(m measured) int { return m.product.lines })
	row("product Go, comments: % of all lines", func(m measured) string {
		return fmt.Sprintf("%.1f", 100*float64(m.product.comment)/float64(m.product.lines))
	})
	number("product Go, functions", func(m measured) int { return m.product.funcs })
	row("product Go, mean lines of a function", func(m measured) string {
		return fmt.Sprintf("%.1f", float64(m.product.funcLines)/float64(m.product.funcs))
	})
	number("product Go, functions with a complexity over 15", func(m measured) int { return m.product.complex })
	number("generated Go, lines without comments and blanks", func(m measured) int { return m.generated.code })
	number("tests, lines without comments and blanks", func(m measured) int { return m.tests.code })
	number("programs for tests, lines without comments and blanks", func(m measured) int { return m.tools.code })
	here := func(name string, value func(seen *faces) int) {
		row(name, func(m measured) string {
			if m.faces == nil {
				return ""
			}
			return fmt.Sprint(value(m.faces))
		})
	}
	here("tests within a package, uses of what it does not export", func(seen *faces) (n int) {
		for _, of := range seen.behind {
			n += of
		}
		return n
	})
	here("exported names that no other package uses", func(seen *faces) int { return len(seen.unused) })
	here("exported names that only tests use", func(seen *faces) int { return len(seen.forTest) })
	number("papers, words", func(m measured) int { return m.words })
	return rows
}

func show(w io.Writer, columns []string, all []measured) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range append([][]string{append([]string{""}, columns...)}, rows(all)...) {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush() // what cannot be printed is lost
	fmt.Fprintln(w, "generated:", strings.Join(all[len(all)-1].made, ", "))
}

func page(columns []string, all []measured) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# How much there is\n\nWritten by `make lines`. Product is `agent`, `control`, `desktop`, `internal`, `assets` and `main.go`, without tests;\ngenerated is `%s`; papers are all `.md` but those of this folder.\n\n", strings.Join(all[len(all)-1].made, "`, `"))
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
	for _, r := range rows(all) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
	}
	return b.Bytes()
}
