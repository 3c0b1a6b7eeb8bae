//go:build !production || (!windows && !cgo)

package desktop

import (
	"log/slog"

	"porchlight/internal/words"
)

var errNoWindow = words.Errorf("This build of Porchlight has no window. Build it with make desktop.")

// noWindow stands in where the program was built without a toolkit, as it is
// for plain `go test` and `go vet`.
type noWindow struct{}

func newWindow(*slog.Logger, windowOptions) window { return noWindow{} }

func (noWindow) run() error       { return errNoWindow }
func (noWindow) show() bool       { return false }
func (noWindow) emit(string, any) {}
func (noWindow) copy(string) bool { return false }
func (noWindow) quit()            {}

func (noWindow) place(string) (string, error) { return "", errNoWindow }
