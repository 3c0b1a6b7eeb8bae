package upgrade_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"porchlight/agent/ownersecret"
	"porchlight/control/kv/pgtest"
	"porchlight/test/programs"
	"porchlight/test/rig"
	"porchlight/test/upgrade"
)

// bin is where the programs of this version are.
var bin string

func TestMain(m *testing.M) {
	config, err := os.MkdirTemp("", "porchlight-upgrade-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, value := range map[string]string{"XDG_CONFIG_HOME": config, "XDG_RUNTIME_DIR": "", "DBUS_SESSION_BUS_ADDRESS": ""} {
		os.Setenv(name, value)
	}
	use := func(dir string) { bin = dir }
	code := programs.Main(pgtest.Stopping(m), use, "porchlight/agent/cmd/porchlight", "porchlight/control/cmd/porchlight-control")
	os.RemoveAll(config)
	os.Exit(code)
}

// plane is the control plane of a connected computer: this version's server, on the
// database and the directory that an earlier one left.
type plane struct {
	dir      string
	database string
	running  *rig.Node
}

// restore puts the recorded rows into a database, made as the earlier version made it and
// whose clock says now, and gives this computer the credential it had.
func restore(t *testing.T, dir string, now time.Time) (p *plane, err error) {
	t.Helper()
	p = &plane{dir: filepath.Join(dir, "control"), database: pgtest.Database(t)}
	statements, err := os.ReadFile(filepath.Join(dir, "database.sql"))
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(t.Context(), p.database)
	if err != nil {
		return nil, err
	}
	_, err = conn.PgConn().Exec(t.Context(), string(statements)).ReadAll()
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		return nil, err
	}
	stands := fmt.Sprintf("pg_catalog.clock_timestamp() - interval '%d microseconds'", time.Since(now).Microseconds())
	pgtest.SetClock(t, p.database, stands)
	return p, keepCredential(t, dir)
}

// keepCredential puts the device credential where one of this data directory is: its
// file is named after the directory, which is another one here.
func keepCredential(t *testing.T, dir string) error {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "config", "porchlight", "device", "*.secret"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("the recorded credentials: %q, %w", files, err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	_, id, _ := strings.Cut(strings.TrimSuffix(filepath.Base(files[0]), ".secret"), "-")
	return ownersecret.DeviceFile(filepath.Join(dir, "data"), id).Set(t.Context(), strings.TrimSpace(string(raw)))
}

// start serves at a free port, and has the computer of data look there: another program
// may have the port of then.
func (p *plane) start(t *testing.T, data string) {
	t.Helper()
	p.running = programs.Got(rig.In(t, bin).Node(t.Context(), p.dir, "--postgres", p.database, "--domain", upgrade.Domain))(t)
	file := filepath.Join(data, "connection.json")
	raw := programs.Got(os.ReadFile(file))(t)
	then := regexp.MustCompile(`"authUrl": *"[^"]*"`)
	programs.Must(t, os.WriteFile(file, then.ReplaceAll(raw, []byte(`"authUrl":"`+p.running.AuthURL+`"`)), 0o600))
}

// stop ends it, once.
func (p *plane) stop(t *testing.T) {
	t.Helper()
	if p.running == nil {
		return
	}
	defer func() { p.running = nil }()
	if code := p.running.Stop(); code != 0 {
		t.Errorf("the control plane ended with %d", code)
	}
}
