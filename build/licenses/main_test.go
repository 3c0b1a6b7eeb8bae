package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// A package that is linked in, on any system, has its licence printed.
func TestWhatIsWrittenDownIsUpToDate(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../internal/commandline/licenses.txt")
	if err != nil {
		t.Fatal(err)
	}
	const again = "Run: npm ci in frontend, and go generate ./internal/commandline"
	parts, err := linked("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) < 60 {
		t.Errorf("only %d modules were found to be linked", len(parts))
	}
	for _, p := range parts {
		if !strings.Contains(string(raw), "\n"+p.name+"\n") {
			t.Errorf("%s is linked in and not named. %s", p.name, again)
		}
	}
	window, err := windows("../..")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the packages of npm are not here, so their licences are not compared")
	}
	if err != nil {
		t.Fatal(err)
	}
	if want, err := written(slices.Concat(parts, window, ofUnicode("../.."))); err != nil || want != string(raw) {
		t.Errorf("the licences have changed (%v). %s", err, again)
	}
}

// A part without a licence is found out, and the Apache License is told from others.
func TestLicensesAreFound(t *testing.T) {
	t.Parallel()
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		files  map[string]string
		text   string
		apache bool
	}{
		"none":               {files: map[string]string{"README": "MIT", "license.go": "package x"}},
		"one":                {files: map[string]string{"LICENCE.md": "Be kind.\r\n"}, text: "Be kind."},
		"Apache":             {files: map[string]string{"LICENSE": string(apache)}, apache: true},
		"Apache and another": {files: map[string]string{"LICENSE": "Parts: \n" + string(apache) + "\nBe kind.", "NOTICE": "By Maya"}, text: "Parts:\n\nBe kind.\n\nBy Maya", apache: true},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text, apache, err := part{"x", dir, map[string]bool{dir: true}}.license()
		if none := c.text == "" && !c.apache; text != c.text || apache != c.apache || (err != nil) != none {
			t.Errorf("%s: %q, %v, %v", what, text, apache, err)
		}
	}
}
