package ownersecret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/zalando/go-keyring"
	"go.uber.org/goleak"

	"porchlight/test/programs"
)

// busNamed is the variable that names the bus.
const busNamed = "DBUS_SESSION_BUS_ADDRESS"

// The keychain tests talk to a real gnome-keyring-daemon on a private bus. The
// libraries keep one bus connection for a whole process, so each test runs this
// test binary again, as one of the roles below, inside a session of its own.
const roleVariable = "PORCHLIGHT_TEST_ROLE"

var roles = map[string]func(context.Context, *dbus.Conn) error{
	"unlocked":   roleUnlocked,
	"locked":     roleLocked,
	"no service": roleNoService,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		if err := play(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// play runs a role with a connection to its bus.
func play(role string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return roles[role](ctx, conn)
}

func TestKeychainUnlocked(t *testing.T)        { t.Parallel(); inSession(t, "unlocked") }
func TestKeychainLocked(t *testing.T)          { t.Parallel(); inSession(t, "locked") }
func TestKeychainWithoutAService(t *testing.T) { t.Parallel(); inSession(t, "no service") }

// busConfig is a bus that starts nothing by itself: what answers on it was put
// there by the test.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>`

// inSession runs a role with a bus of its own in XDG_RUNTIME_DIR/bus, and
// nowhere else to find it.
func inSession(t *testing.T, role string) {
	for program, pkg := range map[string]string{"dbus-run-session": "dbus", "dbus-daemon": "dbus", "gnome-keyring-daemon": "gnome-keyring"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("this test needs %s: apt-get install %s", program, pkg)
		}
	}
	dir, err := os.MkdirTemp("", "pl") // not t.TempDir: a socket's path is short
	programs.Must(t, err)
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "bus.conf")
	programs.Must(t, os.WriteFile(config, fmt.Appendf(nil, busConfig, filepath.Join(dir, "bus")), 0o600))
	self := programs.Got(os.Executable())(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// env drops the address dbus-run-session hands out: the bus is to be found.
	cmd := exec.CommandContext(ctx, "dbus-run-session", "--config-file="+config, "--",
		"env", "-u", busNamed, self)
	cmd.Env = []string{roleVariable + "=" + role, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + dir, "HOME=" + dir,
		"XDG_DATA_HOME=" + filepath.Join(dir, "share"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "GORACE=" + os.Getenv("GORACE")}
	// A group of its own, so that nothing of the session outlives the test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// daemon is a running gnome-keyring-daemon.
type daemon struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

const masterPassword = "a test's password"

// startDaemon starts a keyring daemon and waits for its name on the bus. With
// unlock the login keyring is opened, and made if there is none.
func startDaemon(ctx context.Context, conn *dbus.Conn, unlock bool) (*daemon, error) {
	owned, stop, err := nameOwned(conn, secretsName)
	if err != nil {
		return nil, err
	}
	defer stop()
	d := &daemon{cmd: exec.CommandContext(ctx, "gnome-keyring-daemon", "--components=secrets", "--foreground")}
	if unlock {
		d.cmd.Args = append(d.cmd.Args, "--unlock")
		d.cmd.Stdin = strings.NewReader(masterPassword)
	}
	d.cmd.Env = append(os.Environ(), busNamed+"=unix:path="+filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus"))
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	select {
	case <-owned:
		return d, nil
	case <-ctx.Done():
		d.stop()
		return nil, fmt.Errorf("gnome-keyring-daemon did not appear on the bus: %w\n%s", ctx.Err(), d.log.String())
	}
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// nameOwned is told when name next gets an owner.
func nameOwned(conn *dbus.Conn, name string) (<-chan struct{}, func(), error) {
	match := []dbus.MatchOption{dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, name)}
	if err := conn.AddMatchSignal(match...); err != nil {
		return nil, nil, err
	}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	owned := make(chan struct{})
	var once sync.Once
	go func() {
		for s := range signals {
			if s.Name == "org.freedesktop.DBus.NameOwnerChanged" && len(s.Body) == 3 && s.Body[0] == name && s.Body[2] != "" {
				once.Do(func() { close(owned) })
			}
		}
	}()
	return owned, func() {
		_ = conn.RemoveMatchSignal(match...)
		conn.RemoveSignal(signals)
		close(signals)
	}, nil
}

func connect(ctx context.Context) (*dbus.Conn, error) {
	return dbus.Connect("unix:path="+filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus"), dbus.WithContext(ctx))
}

// expect is the check of a role: err must be want.
func expect(what string, err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: %v, want %v", what, err, want)
	}
	return nil
}

// formerEntries is about entries under names that say nothing, as former versions
// made them: read as before, replaced and deleted with those of today.
func formerEntries(ctx context.Context) error {
	const connection = "c1"
	hash, _, err := entry("/srv/former")
	if err != nil {
		return err
	}
	s, name := patient(DeviceKeychain("/srv/former", connection)), hash+"-"+connection
	if err := keyring.Set(service, name, "of-a-former-version"); err != nil {
		return err
	}
	if got, err := s.Get(ctx); err != nil || got != "of-a-former-version" {
		return fmt.Errorf("a former entry is read as %q, %v", got, err)
	}
	if err := s.Set(ctx, "of-today"); err != nil {
		return err
	}
	if _, err := keyring.Get(service, name); !errors.Is(err, keyring.ErrNotFound) {
		return fmt.Errorf("the former entry after Set: %v", err)
	}
	if got, err := keyring.Get(service, "computer c1 of /srv/former"); err != nil || got != "of-today" {
		return fmt.Errorf("by the name an owner sees: %q, %v", got, err)
	}
	if err := keyring.Set(service, name, "left-over"); err != nil {
		return err
	}
	if err := s.Delete(ctx); err != nil {
		return err
	}
	return expect("both are deleted", second(s.Get(ctx)), ErrNotFound)
}

func roleUnlocked(ctx context.Context, conn *dbus.Conn) error {
	d, err := startDaemon(ctx, conn, true)
	if err != nil {
		return err
	}
	defer d.stop()

	s := patient(Keychain("/srv/one"))
	if err := expect("Get before Set", second(s.Get(ctx)), ErrNotFound); err != nil {
		return err
	}
	if err := expect("Delete before Set", s.Delete(ctx), ErrNotFound); err != nil {
		return err
	}
	for range 2 { // the second replaces the first
		secret := New()
		if err := s.Set(ctx, secret); err != nil {
			return fmt.Errorf("Set: %w", err)
		}
		if got, err := s.Get(ctx); err != nil || got != secret {
			return fmt.Errorf("Get after Set: %v, the right secret: %v", err, got == secret)
		}
	}
	if err := formerEntries(ctx); err != nil {
		return err
	}
	if err := expect("another data directory", second(patient(Keychain("/srv/two")).Get(ctx)), ErrNotFound); err != nil {
		return err
	}
	// Calls side by side share the bus connection.
	var wg sync.WaitGroup
	failed := make(chan error, 16)
	for i := range 16 {
		wg.Go(func() {
			s := patient(Keychain(fmt.Sprintf("/srv/side/%d", i)))
			secret := New()
			err := s.Set(ctx, secret)
			var got string
			if err == nil {
				got, err = s.Get(ctx)
			}
			if err == nil && got != secret {
				err = errors.New("another's secret came back")
			}
			failed <- err
		})
	}
	wg.Wait()
	for range 16 {
		if err := <-failed; err != nil {
			return fmt.Errorf("side by side: %w", err)
		}
	}
	if err := s.Delete(ctx); err != nil {
		return fmt.Errorf("Delete: %w", err)
	}
	if err := expect("Get after Delete", second(s.Get(ctx)), ErrNotFound); err != nil {
		return err
	}
	gone, cancelGone := context.WithCancel(ctx)
	cancelGone()
	if err := expect("a context that is over", second(s.Get(gone)), context.Canceled); err != nil {
		return err
	}

	d.stop()
	return expect("after the service has gone", second(s.Get(ctx)), ErrUnavailable)
}

func second(_ string, err error) error { return err }

// patient is a store that a busy machine does not make impatient.
func patient(s KeychainStore) KeychainStore {
	s.timeout = time.Minute
	return s
}

// roleLocked: the daemon comes back with its keyring locked, and the program
// that would ask for the password never answers.
func roleLocked(ctx context.Context, conn *dbus.Conn) error {
	d, err := startDaemon(ctx, conn, true)
	if err != nil {
		return err
	}
	s := patient(Keychain("/srv/one"))
	secret := New()
	err = s.Set(ctx, secret)
	d.stop()
	if err != nil {
		return fmt.Errorf("Set: %w", err)
	}
	prompter, err := silentPrompter(ctx)
	if err != nil {
		return err
	}
	defer prompter.Close()
	if d, err = startDaemon(ctx, conn, false); err != nil {
		return err
	}
	defer d.stop()

	// Three calls: the first is left behind at the question on the screen, the
	// others find it there and do not ask again.
	s.timeout = time.Second
	for n := range 3 {
		if err := expect(fmt.Sprintf("Get %d of a locked keyring", n+1), second(s.Get(ctx)), ErrLocked); err != nil {
			return err
		}
	}
	for look := time.NewTicker(10 * time.Millisecond); stuck.Load() != 1; { // a busy machine leaves others behind for a moment
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%d calls hang in the keychain, want 1", stuck.Load())
		}
	}
	if err := expect("Set with a locked keyring", s.Set(ctx, secret), ErrLocked); err != nil {
		return err
	}

	// The owner unlocks it elsewhere: the next call works, the one left behind
	// notwithstanding.
	if err := unlock(conn); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	got, err := patient(s).Get(ctx)
	if err != nil || got != secret {
		return fmt.Errorf("Get once unlocked: %v, the right secret: %v", err, got == secret)
	}
	return nil
}

// silentPrompter takes the place of the program that asks for passwords and
// leaves every question unanswered.
func silentPrompter(ctx context.Context) (*dbus.Conn, error) {
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	const path, iface = "/org/gnome/keyring/Prompter", "org.gnome.keyring.internal.Prompter"
	if err := conn.Export(silence{}, path, iface); err != nil {
		return nil, err
	}
	reply, err := conn.RequestName("org.gnome.keyring.SystemPrompter", dbus.NameFlagDoNotQueue)
	if err == nil && reply != dbus.RequestNameReplyPrimaryOwner {
		err = errors.New("somebody else asks for passwords on this bus")
	}
	return conn, err
}

type silence struct{}

func (silence) BeginPrompting(dbus.ObjectPath) *dbus.Error { return nil }

func (silence) PerformPrompt(dbus.ObjectPath, string, map[string]dbus.Variant, string) *dbus.Error {
	return nil
}

func (silence) StopPrompting(dbus.ObjectPath) *dbus.Error { return nil }

// unlock opens the login keyring as the login screen does.
func unlock(conn *dbus.Conn) error {
	type secret struct {
		Session     dbus.ObjectPath
		Parameters  []byte
		Value       []byte
		ContentType string
	}
	var ignored dbus.Variant
	var session dbus.ObjectPath
	service := conn.Object(secretsName, secretsPath)
	if err := service.Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&ignored, &session); err != nil {
		return err
	}
	return service.Call("org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface.UnlockWithMasterPassword", 0,
		dbus.ObjectPath(loginCollection), secret{session, []byte{}, []byte(masterPassword), "text/plain"}).Err
}

// roleNoService: a bus without a Secret Service, a bus address that leads
// nowhere, and a keyring daemon in which no keyring was ever made.
func roleNoService(ctx context.Context, conn *dbus.Conn) error {
	s := patient(Keychain("/srv/one"))
	if err := expect("a bus without a Secret Service", second(s.Get(ctx)), ErrUnavailable); err != nil {
		return err
	}
	d, err := startDaemon(ctx, conn, false)
	if err != nil {
		return err
	}
	defer d.stop()
	if err := expect("no keyring was ever made", second(s.Get(ctx)), ErrUnavailable); err != nil {
		return err
	}
	if err := os.Setenv(busNamed, "unix:path="+filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "nothing")); err != nil {
		return err
	}
	return expect("a bus address that leads nowhere", second(s.Get(ctx)), ErrUnavailable)
}

// Without a bus nothing may be started in its place: godbus would run
// dbus-launch, which leaves a bus behind that nobody else uses.
func TestKeychainWithoutABus(t *testing.T) {
	dir := t.TempDir()
	marker := filepath.Join(dir, "launched")
	programs.Must(t, os.WriteFile(filepath.Join(dir, "dbus-launch"), fmt.Appendf(nil, "#!/bin/sh\n: > %q\n", marker), 0o700))
	t.Setenv("PATH", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	for _, address := range []string{"", "autolaunch:", "autolaunch:scope=*user"} {
		t.Setenv(busNamed, address)
		for _, call := range []error{
			second(Keychain("/srv/one").Get(t.Context())),
			Keychain("/srv/one").Set(t.Context(), New()),
			Keychain("/srv/one").Delete(t.Context()),
		} {
			if !errors.Is(call, ErrUnavailable) {
				t.Errorf("%q: %v, want ErrUnavailable", address, call)
			}
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("dbus-launch was run")
	}
}

// A socket that accepts and never speaks must not hold anybody up.
func TestKeychainOnASilentBus(t *testing.T) {
	dir := programs.Got(os.MkdirTemp("", "pl"))(t)
	defer os.RemoveAll(dir)
	ln := programs.Got(net.Listen("unix", filepath.Join(dir, "bus")))(t)
	defer ln.Close()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv(busNamed, "")
	s := KeychainStore{dataDir: "/srv/one", timeout: 200 * time.Millisecond}
	if _, err := s.Get(t.Context()); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with a context that is over: %v", err)
	}
}
