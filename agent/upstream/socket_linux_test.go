package upstream_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"porchlight/agent/agentapi"
	"porchlight/agent/upstream"
	"porchlight/test/programs"
)

// dir is a short path that nobody else may enter, without links in it.
func dir(t *testing.T) string {
	t.Helper()
	made, err := os.MkdirTemp("", "sock")
	if err == nil {
		made, err = filepath.EvalSymlinks(made)
	}
	programs.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(made) })
	return made
}

// socket listens at a path and counts the bytes that came, over all connections.
func socket(t *testing.T, path string) (heard func() int) {
	t.Helper()
	ln := programs.Got(net.Listen("unix", path))(t)
	var total atomic.Int64
	end := programs.ServeConns(t, ln, func(conn net.Conn) {
		n, _ := conn.Read(make([]byte, 64)) // ends when the other side does
		total.Add(int64(n))
	})
	return func() int { end(); return int(total.Load()) }
}

func at(path string) upstream.Target {
	return upstream.Of("", 1, "", agentapi.AppOptions{Upstream: "unix:" + path})
}

// What is refused is refused with a sentence that says what is wrong, and hears nothing.
func TestSocketsThatAreRefused(t *testing.T) {
	t.Parallel()
	make := func(t *testing.T, path string) string {
		t.Helper()
		programs.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		heard := socket(t, path)
		t.Cleanup(func() {
			if n := heard(); n != 0 {
				t.Errorf("it heard %d bytes", n)
			}
		})
		return path
	}
	chmod := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		programs.Must(t, os.Chmod(path, mode))
	}
	for what, tt := range map[string]struct {
		path func(t *testing.T, in string) string
		says string // empty: it is dialled
	}{
		"as it should be": {func(t *testing.T, in string) string { return make(t, in+"/a/app.sock") }, ""},
		"a link": {func(t *testing.T, in string) string {
			real := make(t, in+"/app.sock")
			programs.Must(t, os.Symlink(real, in+"/link.sock"))
			return in + "/link.sock"
		}, "readlink -f"},
		"a link on the way": {func(t *testing.T, in string) string {
			make(t, in+"/real/app.sock")
			programs.Must(t, os.Symlink("real", in+"/around"))
			return in + "/around/app.sock"
		}, "around is a link"},
		"a file": {func(t *testing.T, in string) string {
			programs.Must(t, os.WriteFile(in+"/app.sock", nil, 0o600))
			return in + "/app.sock"
		}, "no socket"},
		"a directory": {func(t *testing.T, in string) string { make(t, in+"/a/app.sock"); return in + "/a" }, "no socket"},
		"everybody's directory": {func(t *testing.T, in string) string {
			path := make(t, in+"/a/app.sock")
			chmod(t, in+"/a", 0o777)
			return path
		}, "chmod go-w"},
		"everybody's directory above": {func(t *testing.T, in string) string {
			path := make(t, in+"/a/b/app.sock")
			chmod(t, in+"/a", 0o757)
			return path
		}, "/a."},
		"everybody's, but each only their own": {func(t *testing.T, in string) string {
			path := make(t, in+"/a/app.sock")
			chmod(t, in+"/a", 0o777|os.ModeSticky)
			return path
		}, ""},
		"a key agent's name": {func(t *testing.T, in string) string { return make(t, in+"/S.gpg-agent.ssh") }, "keeps keys"},
		"a container's name": {func(t *testing.T, in string) string { return make(t, in+"/docker.sock") }, "container"},
		"Porchlight's own":   {func(t *testing.T, in string) string { return make(t, in+"/porchlight-0123456789/owner.sock") }, "Porchlight itself"},
		"a key agent's by another name": {func(t *testing.T, in string) string {
			programs.Must(t, os.Link(make(t, in+"/S.gpg-agent"), in+"/app.sock"))
			return in + "/app.sock"
		}, "keeps keys"},
		"Porchlight's own, moved": {func(t *testing.T, in string) string {
			make(t, in+"/porchlight-0123456789/owner.sock")
			programs.Must(t, os.Rename(in+"/porchlight-0123456789", in+"/apps"))
			programs.Must(t, os.Rename(in+"/apps/owner.sock", in+"/apps/app.sock"))
			return in + "/apps/app.sock"
		}, "Porchlight itself"},
		"another root": {func(t *testing.T, _ string) string { return "app.sock" }, "whole path"},
		"around":       {func(t *testing.T, in string) string { return in + "/../app.sock" }, "whole path"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			conn, err := at(tt.path(t, dir(t))).Dial(t.Context(), upstream.Checks{})
			if tt.says == "" {
				programs.Must(t, err)
				conn.Close()
				return
			}
			sentence, is := errors.AsType[upstream.SocketError](err)
			if !is || !strings.Contains(string(sentence), tt.says) || !strings.HasSuffix(string(sentence), ".") && !strings.Contains(string(sentence), "readlink") {
				t.Errorf("%v, want a sentence with %q", err, tt.says)
			}
			if f := upstream.Explain(err); f.Detail != string(sentence) {
				t.Errorf("explained as %+v", f)
			}
		})
	}
}

// A real agent of keys is known by its program, wherever it listens.
func TestKeyAgentAtAnyPath(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("ssh-agent")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("ssh-agent is not installed here (openssh-client)")
	}
	programs.Must(t, err)
	path := dir(t) + "/app.sock"
	agent := exec.Command(program, "-D", "-a", path)
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	programs.Must(t, err)
	defer func() { agent.Process.Kill(); agent.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // where it listens
		t.Fatal(err)
	}
	_, err = at(path).Dial(t.Context(), upstream.Checks{})
	if sentence, is := errors.AsType[upstream.SocketError](err); !is || !strings.Contains(string(sentence), "ssh-agent's") {
		t.Errorf("%v", err)
	}
}

// A program that takes a connection and leaves the port to the approved one before
// anybody has looked who listens is sent nothing: the connection is made anew.
func TestWhoTookTheConnectionStays(t *testing.T) {
	t.Parallel()
	for what, staying := range map[string]bool{"the approved one stays": true, "nobody stays": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			address := programs.FreeAddress(t)
			ln := listen(t, "tcp4", address)
			var heard sync.WaitGroup
			looks := 0
			checks := upstream.Checks{Peer: func(agentapi.Listener) bool {
				if looks++; looks > 1 && staying {
					return true
				}
				conn, err := ln.Accept()
				if err != nil {
					t.Error(err)
					return false
				}
				ln.Close()
				ln = listen(t, "tcp4", address) // who is looked at
				heard.Go(func() {
					defer conn.Close()
					if got, _ := io.ReadAll(conn); len(got) > 0 {
						t.Errorf("who left the port heard %q", got)
					}
				})
				return true
			}}
			conn, err := upstream.Target{Port: ln.Addr().(*net.TCPAddr).Port}.Dial(t.Context(), checks)
			if err == nil {
				io.WriteString(conn, "for the approved one")
				conn.Close()
			}
			heard.Wait()
			if (err == nil) != staying || err != nil && !upstream.Refused(err) {
				t.Error(err)
			}
		})
	}
}

// listen listens at an address, which may have been let go a moment ago: a program that
// another test starts just then has a copy of what listened until it runs.
func listen(t *testing.T, network, address string) (ln net.Listener) {
	t.Helper()
	programs.Eventually(t, address+" is free", func() (is bool) {
		var err error
		if ln, err = net.Listen(network, address); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { ln.Close() })
	return ln
}

// A socket that this user's environment names is another program's, by whatever name.
func TestSocketsTheEnvironmentNames(t *testing.T) {
	in := dir(t)
	for variable, form := range map[string]string{"SSH_AUTH_SOCK": "%", "DBUS_SESSION_BUS_ADDRESS": "unix:path=%,guid=1", "DOCKER_HOST": "unix://%"} {
		path := filepath.Join(in, variable)
		heard := socket(t, path)
		t.Setenv(variable, strings.ReplaceAll(form, "%", path))
		_, err := at(path).Dial(t.Context(), upstream.Checks{})
		if _, is := errors.AsType[upstream.SocketError](err); !is {
			t.Errorf("%s: %v", variable, err)
		}
		programs.Must(t, os.Link(path, path+"-too"))
		if _, err := at(path+"-too").Dial(t.Context(), upstream.Checks{}); err == nil {
			t.Errorf("%s is dialled by another name", variable)
		}
		if n := heard(); n != 0 {
			t.Errorf("%s heard %d bytes", variable, n)
		}
	}
}

// Who took the connection is asked of the kernel, and told before a byte is sent. A
// refusal closes it.
func TestPeerOfASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(dir(t), "app.sock")
	heard := socket(t, path)
	var peer agentapi.Listener
	for _, may := range []bool{true, false} {
		conn, err := at(path).Dial(t.Context(), upstream.Checks{Peer: func(p agentapi.Listener) bool { peer = p; return may }})
		if may != (err == nil) || !may && !errors.Is(err, upstream.ErrStranger) {
			t.Errorf("may %v: %v", may, err)
		}
		if err == nil {
			conn.Close()
		}
		if peer.PID != os.Getpid() || peer.UserID != strconv.Itoa(os.Geteuid()) || peer.Program == "" {
			t.Errorf("the peer is %+v", peer)
		}
	}
	if owner := upstream.SocketOwner(path); owner.UserID != peer.UserID {
		t.Errorf("the owner is %+v", owner)
	}
	if n := heard(); n != 0 {
		t.Errorf("it heard %d bytes", n)
	}
	if owner := upstream.SocketOwner(path); owner != (agentapi.Listener{}) {
		t.Errorf("nobody's socket is %+v", owner)
	}
	_, err := at(path).Dial(t.Context(), upstream.Checks{})
	if op, is := errors.AsType[*net.OpError](err); !is || op.Op != "dial" || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("no socket: %v", err)
	}
}

// Who took a connection has a number, which is another once it was started anew.
func TestWhoTook(t *testing.T) {
	t.Parallel()
	path := filepath.Join(dir(t), "app.sock")
	socket(t, path)
	port := programs.FreePort(t) // which nobody takes while nobody listens
	ln := listen(t, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	took := func(target upstream.Target) (by uint64) {
		t.Helper()
		conn := programs.Got(target.Dial(t.Context(), upstream.Checks{Took: func(n uint64) { by = n }}))(t)
		conn.Close()
		return by
	}
	if by := took(at(path)); by != uint64(os.Getpid()) {
		t.Errorf("at a socket it is %d, want %d", by, os.Getpid())
	}
	first, second := took(upstream.Target{Port: port}), took(upstream.Target{Port: port})
	ln.Close()
	listen(t, "tcp4", ln.Addr().String())
	if anew := took(upstream.Target{Port: port}); first == 0 || second != first || anew == 0 || anew == first {
		t.Errorf("%d, then %d, and anew %d", first, second, anew)
	}
}

// A file that is left of a program that ended is nobody.
func TestSocketOfNobody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(dir(t), "app.sock")
	ln := programs.Got(net.Listen("unix", path))(t)
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if _, err := at(path).Dial(t.Context(), upstream.Checks{}); !upstream.Refused(err) {
		t.Errorf("%v", err)
	}
}

// The socket of another user in a directory of another user: it is the caller's affair
// whose it is, and a third user's directory is refused.
func TestDirectoriesOfOthers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user; run this test as root")
	}
	in := dir(t)
	theirs := filepath.Join(in, "theirs")
	programs.Must(t, os.Mkdir(theirs, 0o755))
	path := filepath.Join(theirs, "app.sock")
	socket(t, path)
	own := func(path string, uid int) {
		t.Helper()
		programs.Must(t, os.Chown(path, uid, uid))
	}
	for _, tt := range []struct {
		dir, socket int
		refused     bool
	}{{0, 0, false}, {0, 65534, false}, {65534, 65534, false}, {65534, 0, true}, {65533, 65534, true}} {
		own(theirs, tt.dir)
		own(path, tt.socket)
		conn, err := at(path).Dial(t.Context(), upstream.Checks{})
		if tt.refused != (err != nil) {
			t.Errorf("%+v: %v", tt, err)
		}
		if err == nil {
			conn.Close()
			if owner := upstream.SocketOwner(path); owner.UserID != strconv.Itoa(tt.socket) {
				t.Errorf("%+v: the owner is %+v", tt, owner)
			}
		}
	}
}
