package desktop

import (
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/desktop/instance"
	"porchlight/desktop/language"
	"porchlight/internal/words"
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
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run(startOptions{data: filepath.Join(file, "data")}, io.Discard); code != 1 {
		t.Fatalf("exit code %d", code)
	}
	if tag := language.Spoken().Tag(); tag != "de" {
		t.Errorf("it was said in %q", tag)
	}
	if _, err := instance.Acquire(filepath.Join(file, "data")); !strings.HasPrefix(language.ErrorInWords(err).Error(), "Porchlight kann sein Datenverzeichnis") {
		t.Errorf("it was said: %v", language.ErrorInWords(err))
	}
}

// Another user of the computer is told whose Porchlight runs, and no second one is started.
func TestAnotherUsersPorchlight(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to listen as another user")
	}
	listening := make(chan net.Listener)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		syscall.Syscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		listening <- l
	}()
	theirs := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(agentapi.StatusSummary{})
	}))
	theirs.Listener.Close()
	if theirs.Listener = <-listening; theirs.Listener == nil {
		t.Fatal("cannot listen as another user")
	}
	theirs.Start()
	defer theirs.Close()
	runner := newAgentRunner(startOptions{data: t.TempDir(), api: theirs.Listener.Addr().String()}, slog.New(slog.DiscardHandler), &app{})
	runner.make = nil // it is not asked for one
	if err := runner.run(t.Context()); err == nil || err.Error() != "Porchlight runs on this computer as nobody, who decides here: ask them." {
		t.Errorf("it says: %v", err)
	}
}
