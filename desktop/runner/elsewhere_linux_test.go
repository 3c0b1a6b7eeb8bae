package runner

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
)

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
	e := New(Options{
		Log: slog.New(slog.DiscardHandler), DataDir: t.TempDir(), API: theirs.Listener.Addr().String(),
		OnStart: func() { t.Error("it starts") },
	})
	if err := e.Run(t.Context()); err == nil || err.Error() != "Porchlight runs on this computer as nobody, who decides here: ask them." {
		t.Errorf("it says: %v", err)
	}
}
