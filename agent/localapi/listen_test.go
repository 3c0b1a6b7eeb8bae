package localapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

func TestListenOpenSaysWhoHoldsThePort(t *testing.T) {
	t.Parallel()
	l, err := listenOpen("localhost:0")
	programs.Must(t, err)
	defer l.Close()
	_, err = listenOpen(l.Addr().String())
	want := fmt.Sprintf("%s (process %d)", filepath.Base(os.Args[0]), os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--api") {
		t.Errorf("a busy port: %v, want it to name %s", err, want)
	}
}

func TestListenOpenRefusesOtherComputers(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.net:0", "127.0.0.1", "", "127.0.0.1:x"} {
		l, err := listenOpen(addr)
		if err == nil {
			l.Close()
			t.Errorf("%q was taken", addr)
		}
	}
}
