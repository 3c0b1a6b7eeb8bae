//go:build linux

// Package internet is an internet of a test's own: the programs fetch what clients say of
// themselves from the internet alone, and have no switch for anything else.
//
// Again runs this program once more, in a network and with a view of files of its own.
// There, Open makes addresses of documentation (RFC 5737) lead to this process while they
// are none of this computer's interfaces, and hosts below .example have names, certificates
// of an authority that no other program trusts, and port 443. Nothing of it is left when
// the process ends.
package internet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"porchlight/internal/localca"
	"porchlight/test/programs"
)

// insideVariable is set where Again has run this program.
const insideVariable = "PORCHLIGHT_TEST_INTERNET"

// ErrMayNot is of somebody who may make no network.
var ErrMayNot = errors.New("this system lets nobody but root make a network")

// Inside says whether this process is one that Again has run.
func Inside() bool { return os.Getenv(insideVariable) != "" }

// Again runs this program with other arguments in an internet of its own.
func Again(ctx context.Context, env []string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(append(os.Environ(), env...), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 { // who needs a table of users for it
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err = cmd.Run(); errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		return ErrMayNot
	}
	return err
}

// Internet is what there is inside.
type Internet struct {
	CA  string // file of the authority that its hosts have their certificates of, for SSL_CERT_FILE
	dir string
	ca  *localca.CA

	mu    sync.Mutex // protects what follows
	names []string   // lines of /etc/hosts
	hosts int
}

// Open makes it, once, with files below dir.
func Open(ctx context.Context, dir string) (*Internet, error) {
	if !Inside() {
		return nil, errors.New("an internet would be made of this computer's own network")
	}
	in := &Internet{CA: filepath.Join(dir, "internet", "root.pem"), dir: dir}
	var err error
	if in.ca, err = localca.Open(filepath.Join(dir, "internet"), localca.Options{Names: []string{"example"}}); err != nil {
		return nil, err
	}
	if err := in.write(); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"route", "add", "local", "203.0.113.0/24", "dev", "lo"}, // delivered here, and yet no address of an interface
	} {
		if _, err := programs.Output(exec.CommandContext(ctx, "ip", args...)); err != nil {
			return nil, err
		}
	}
	return in, errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(in.file(), "/etc/hosts", "", unix.MS_BIND, ""))
}

func (in *Internet) file() string { return filepath.Join(in.dir, "hosts") }

// write writes the names in place: the file stays the one that is mounted.
func (in *Internet) write() error {
	return os.WriteFile(in.file(), []byte("127.0.0.1 localhost\n::1 localhost\n"+strings.Join(in.names, "")), 0o644)
}

// Name has a host lead to an address, besides those that it leads to already.
func (in *Internet) Name(host, address string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.names = append(in.names, address+" "+host+"\n")
	return in.write()
}

// Serve has a host below .example answer by HTTPS at an address of its own, until ctx ends.
func (in *Internet) Serve(ctx context.Context, host string, answer http.Handler) error {
	cert, err := in.ca.Issue(host)
	if err != nil {
		return err
	}
	in.mu.Lock()
	in.hosts++
	address := fmt.Sprintf("203.0.113.%d", in.hosts)
	in.mu.Unlock()
	listener, err := net.Listen("tcp", address+":443")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: answer, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}},
	}
	context.AfterFunc(ctx, func() { server.Close() })
	go server.ServeTLS(listener, "", "")
	return in.Name(host, address)
}
