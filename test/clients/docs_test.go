package clients

import (
	"os"
	"strings"
	"testing"
)

// The programs in docs/remote-client.md are those that the tests run.
func TestDocumentationQuotesItsPrograms(t *testing.T) {
	t.Parallel()
	doc := read(t, "../../docs/remote-client.md")
	for path, language := range map[string]string{"reader/main.go": "go", "node/reader.mjs": "js", "python/reader.py": "python", "curl/reader.sh": "bash"} {
		if !strings.Contains(doc, "```"+language+"\n"+read(t, path)+"```\n") {
			t.Errorf("docs/remote-client.md does not quote test/clients/%s as it is", path)
		}
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
