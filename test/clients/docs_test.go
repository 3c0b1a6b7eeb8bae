package clients

import (
	"os"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// The programs that documents give a reader are those that the tests run.
func TestDocumentationLinksItsPrograms(t *testing.T) {
	t.Parallel()
	for name, paths := range map[string][]string{
		"remote-client.md":  {"reader/main.go", "node/reader.mjs", "python/reader.py", "curl/reader.sh"},
		"writing-an-app.md": {"verify/main.go", "node/verify.mjs", "python/verify.py", "php/verify.php"},
	} {
		doc := read(t, "../../docs/"+name)
		for _, path := range paths {
			if !strings.Contains(doc, "](../test/clients/"+path+")") {
				t.Errorf("docs/%s does not lead to test/clients/%s", name, path)
			}
		}
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	raw := programs.Got(os.ReadFile(path))(t)
	return string(raw)
}
