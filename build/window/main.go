// Command window writes down what a page in Porchlight's window can ask for, for
// both sides: the table of operations for Go, and for TypeScript the types and what
// tests begin with. They come from what docs/openapi/loopback.yaml marks with x-window
// and from the methods that desktop/ui binds.
//
// usage: go generate ./desktop/ui
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "../.." // go generate runs it in desktop/ui
	files, err := generate(filepath.Join(root, "docs/openapi/loopback.yaml"))
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "window:", err)
		os.Exit(1)
	}
}

// generate returns what belongs into the files, by their names in the repository.
func generate(document string) (map[string][]byte, error) {
	spec, err := read(document)
	if err != nil {
		return nil, err
	}
	ops, err := operationsOf(spec)
	if err != nil {
		return nil, err
	}
	table, err := goTable(ops)
	if err != nil {
		return nil, err
	}
	stub, err := stubFile(ops)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"desktop/ui/operations.go":  table,
		"frontend/src/lib/types.ts": typesFile(ops, spec.Components.Schemas),
		"frontend/tests/nothing.ts": stub,
	}, nil
}
