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

// The unit in docs/operating.md is the one that the package brings.
func TestDocumentationQuotesItsUnit(t *testing.T) {
	t.Parallel()
	unit := read(t, "../../build/linux/porchlight-control.service")
	if !strings.Contains(read(t, "../../docs/operating.md"), "```ini\n"+unit+"```\n") {
		t.Error("docs/operating.md does not quote build/linux/porchlight-control.service as it is")
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
