// Package golden compares what a test got with a file that people have read. With
// -update the files are written again.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"porchlight/test/programs"
)

var update = flag.Bool("update", false, "write the golden files again; read them then")

// Check compares got with the file at path.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		programs.Must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := programs.Got(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; read it, and run with -update (-want +got):\n%s", path, diff)
	}
}
