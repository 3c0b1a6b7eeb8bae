package listening_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/test/programs"
)

// otherVariable makes this binary a program of another user that listens.
const otherVariable = "PORCHLIGHT_TEST_LISTENS"

// listenAsOther serves one page until its input ends.
func listenAsOther() int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Println(ln.Addr().(*net.TCPAddr).Port)
	go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<title>Theirs</title>")
	}))
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// Another user's program is listed as theirs, and asked only where the owner says so
// for its port.
func TestAnotherUsersProgram(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to start a program as another user")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{otherVariable + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	cmd.Dir = "/"
	in := programs.Got(cmd.StdinPipe())(t)
	out := programs.Got(cmd.StdoutPipe())(t)
	programs.Must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	buf := make([]byte, 16)
	n := programs.Got(out.Read(buf))(t)
	port := programs.Got(strconv.Atoi(strings.TrimSpace(string(buf[:n]))))(t)
	r := newRig()
	if one, ok := r.at(port); !ok || one.Own || one.Looks || one.User != "nobody" || one.NotOffered != "" {
		t.Errorf("%+v, %v", one, ok)
	}
	if _, err := r.Look(t.Context(), agentapi.Look{Port: port}); agentapi.CodeOf(err) != agentapi.CodeForbidden {
		t.Errorf("unasked: %v", err)
	}
	if got, err := r.Look(t.Context(), agentapi.Look{Port: port, Asked: true}); err != nil || got.Title != "Theirs" {
		t.Errorf("asked: %+v, %v", got, err)
	}
}

// What may not be asked is not, also where the owner presses a button.
func TestNotLookedAt(t *testing.T) {
	t.Parallel()
	own, asked := serve(t, http.NotFoundHandler())
	r := newRig(own)
	for _, press := range []bool{false, true} {
		if _, err := r.Look(t.Context(), agentapi.Look{Port: own, Asked: press}); agentapi.CodeOf(err) != agentapi.CodeForbidden {
			t.Errorf("our own port: %v", err)
		}
	}
	port, askedToo := serve(t, http.NotFoundHandler())
	r.titles.Store(false)
	if _, err := r.Look(t.Context(), agentapi.Look{Port: port, Asked: true}); agentapi.CodeOf(err) != agentapi.CodeConflict {
		t.Errorf("switched off: %v", err)
	}
	if asked.Load()+askedToo.Load() != 0 {
		t.Error("it was asked")
	}
}
