package clients

import (
	"os"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// The programs that docs/remote-client.md gives a reader are those that the tests run.
func TestDocumentationLinksItsPrograms(t *testing.T) {
	t.Parallel()
	doc := read(t, "../../docs/remote-client.md")
	for _, path := range []string{"reader/main.go", "node/reader.mjs", "python/reader.py", "curl/reader.sh"} {
		if !strings.Contains(doc, "](../test/clients/"+path+")") {
			t.Errorf("docs/remote-client.md does not lead to test/clients/%s", path)
		}
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	raw := programs.Got(os.ReadFile(path))(t)
	return string(raw)
}
