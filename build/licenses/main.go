// Command licenses writes down whose code is linked into Porchlight's programs, and under
// which licences: for the commands that print it, and for the packages' copyright files.
// It asks the go command what is linked, on every system, and reads the licences that
// lie beside those packages and, for the window, beside npm's.
//
// usage: go generate ./internal/commandline, after npm ci in frontend
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are what is built, and the tags of their builds.
var programs = []string{"-tags=desktop,production,webkit2_41", "./agent/cmd/porchlight", "./control/cmd/porchlight-control", "."}

// inWindow is what npm brings into the window's page; frontend/vite.config.ts refuses to
// build one with anything else.
var inWindow = []string{"svelte", "clsx", "esm-env", "uqr", "vite"}

func main() {
	text, err := generate("../..") // go generate runs it in internal/commandline
	if err == nil {
		err = os.WriteFile("licenses.txt", []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// part is a module, or a package of npm, and the directories whose files are linked.
type part struct {
	name, root string
	dirs       map[string]bool
}

func generate(repository string) (string, error) {
	parts, err := linked(repository)
	if err != nil {
		return "", err
	}
	window, err := windows(repository)
	if err != nil {
		return "", err
	}
	return written(slices.Concat(parts, window, ofUnicode(repository)))
}

// linked are the modules of which the programs have a package, on any system, and Go.
func linked(repository string) ([]part, error) {
	all := map[string]*part{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, programs...)...)
		cmd.Dir, cmd.Stderr = repository, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=1")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("what is linked on %s: %w", system, err)
		}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Dir      string
				Standard bool
				Module   *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := all[p.Module.Path]
			if m == nil {
				m = &part{p.Module.Path + " " + p.Module.Version, p.Module.Dir, map[string]bool{}}
				all[p.Module.Path] = m
			}
			for dir := p.Dir; strings.HasPrefix(dir, m.root); dir = filepath.Dir(dir) {
				m.dirs[dir] = true
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSpace(string(root))
	parts := []part{{"Go, its standard library", dir, map[string]bool{dir: true}}}
	for _, m := range all {
		parts = append(parts, *m)
	}
	return parts, nil
}

// windows are the packages of npm in the window's page.
func windows(repository string) (parts []part, err error) {
	for _, name := range inWindow {
		dir := filepath.Join(repository, "frontend/node_modules", name)
		raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			return nil, err
		}
		var about struct{ Version string }
		if err := json.Unmarshal(raw, &about); err != nil {
			return nil, err
		}
		parts = append(parts, part{name + " " + about.Version, dir, map[string]bool{dir: true}})
	}
	return parts, nil
}

// ofUnicode is the one table of others that lies in our own code.
func ofUnicode(repository string) []part {
	dir := filepath.Join(repository, "agent/engine")
	return []part{{"confusables.txt of Unicode's UTS #39", dir, map[string]bool{dir: true}}}
}

var (
	isLicense = regexp.MustCompile(`(?i)^(UN)?LICEN[CS]E|^COPYING|^NOTICE`)
	// The Apache License as it is, with or without what says how to apply it.
	apacheText = regexp.MustCompile(`(?s)\s*Apache License\s+Version 2\.0, January 2004\s.*?any such warranty or additional\s+liability\.` +
		`(\s*END OF TERMS AND CONDITIONS)?(\s*APPENDIX: How to apply.*?limitations under the License\.)?`)
	// What Vite's own licence is followed by is linked into Vite, and not into us.
	bundledInVite = regexp.MustCompile(`(?s)\n# Licenses of bundled dependencies.*`)
)

const apacheTitle = "Apache License, Version 2.0"

// license is what lies in one part's directories, in one text; apache says that the
// Apache License is to be added.
func (p part) license() (text string, apache bool, err error) {
	for _, dir := range slices.Sorted(maps.Keys(p.dirs)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", false, err
		}
		for _, e := range entries {
			if e.IsDir() || !isLicense.MatchString(e.Name()) || path.Ext(e.Name()) == ".go" {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return "", false, err
			}
			plain := strings.ReplaceAll(string(raw), "\r\n", "\n")
			apache = apache || apacheText.MatchString(plain)
			plain = strings.TrimSpace(bundledInVite.ReplaceAllString(apacheText.ReplaceAllString(plain, ""), ""))
			if !strings.Contains(text, plain) {
				text += plain + "\n\n"
			}
		}
	}
	if text == "" && !apache {
		return "", false, fmt.Errorf("%s has no licence in %s", p.name, p.root)
	}
	return strings.TrimSpace(text), apache, nil
}

// written is the whole text: parts of one licence together, the Apache License at the
// end, because Debian's packages name it and leave it out.
func written(parts []part) (string, error) {
	by := map[string][]string{} // what to print under the names, and those
	for _, p := range parts {
		text, apache, err := p.license()
		if err != nil {
			return "", err
		}
		if apache {
			text = strings.TrimSpace(apacheTitle + ": its text is at the end.\n\n" + text)
		}
		by[text] = append(by[text], p.name)
	}
	texts := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		slices.Sort(by[a])
		slices.Sort(by[b])
		return cmp.Compare(by[a][0], by[b][0])
	})
	line := strings.Repeat("=", 72) + "\n"
	var out strings.Builder
	out.WriteString("Porchlight is under the " + apacheTitle + ". Linked into its programs, on one system\nor another, is the work of others, each under the licence below its name.\n")
	for _, text := range texts {
		out.WriteString("\n" + line + strings.Join(by[text], "\n") + "\n\n" + text + "\n")
	}
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		return "", err
	}
	out.WriteString("\n" + line + strings.TrimLeft(string(apache), "\n"))
	return out.String(), nil
}
