//go:build !production || (!windows && !cgo)

package page

import (
	"log/slog"

	"porchlight/internal/words"
)

var errNoWindow = words.Errorf("This build of Porchlight has no window. Build it with make desktop.")

// noWindow stands in where the program was built without a toolkit, as it is
// for plain `go test` and `go vet`.
type noWindow struct{}

func New(*slog.Logger, Options) Window { return noWindow{} }

func (noWindow) Run() error       { return errNoWindow }
func (noWindow) Show() bool       { return false }
func (noWindow) Emit(string, any) {}
func (noWindow) Copy(string) bool { return false }
func (noWindow) Quit()            {}

func (noWindow) Place(string) (string, error) { return "", errNoWindow }
