package desktop

import (
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/desktop/instance"
	"porchlight/desktop/language"
	"porchlight/internal/words"
	"porchlight/test/programs"
)

// Why the app cannot even begin is said in the system's language. The language is the
// process', so this runs beside no other test.
func TestRefusalIsInTheSystemsLanguage(t *testing.T) {
	defer language.Speak(language.Spoken().Tag())
	language.Speak(words.English.Tag())
	defer log.SetFlags(log.Flags())
	defer log.SetOutput(log.Writer())
	t.Setenv("LC_ALL", "de_AT.UTF-8")
	t.Setenv("DISPLAY", ":nowhere")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "file")
	programs.Must(t, os.WriteFile(file, nil, 0o600))
	if code := run(startOptions{data: filepath.Join(file, "data")}, io.Discard); code != 1 {
		t.Fatalf("exit code %d", code)
	}
	if tag := language.Spoken().Tag(); tag != "de" {
		t.Errorf("it was said in %q", tag)
	}
	if _, err := instance.Acquire(filepath.Join(file, "data")); !strings.HasPrefix(language.Sentence(err), "Porchlight kann sein Datenverzeichnis") {
		t.Errorf("it was said: %v", language.Sentence(err))
	}
}
