// Command typecheck holds packages to another system without compiling anything
// for it: they and all that they import are read from source. That takes seconds
// where go vet, which compiles the standard library for each system first, takes
// a minute.
//
// usage: typecheck GOOS/GOARCH PACKAGE...
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS/GOARCH PACKAGE...")
		os.Exit(2)
	}
	goos, goarch, _ := strings.Cut(os.Args[1], "/")
	found, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax,
		Env:  append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
	}, os.Args[2:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
	if packages.PrintErrors(found) > 0 {
		os.Exit(1)
	}
}
