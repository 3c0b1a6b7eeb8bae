package containers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// What a normal user tries, whose podman has no root anywhere. To publish a port takes
// /dev/net/tun, which udev lets everybody open; to be named in the computer's own network a
// control group of the container's, which a user has of systemd alone.
const (
	rootless  = "TestASocketThatIsNone TestAContainerWithoutTheSocket TestTheAgentsImage"
	published = "TestAContainerAsksByItsLabels TestContainersThatLie TestComposeOfOneServer TestComposeWithPostgreSQL TestComposeOfThreeNodes"
)

// The same by a user who was made for it: agent, server, engine and containers are all theirs,
// and rootlessport listens in place of docker-proxy.
func TestAsANormalUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes a user; whoever runs this is a normal one already")
	}
	const name = "porchlight-try"
	programs.Got(programs.Output(exec.Command("useradd", "--create-home", "--user-group", name)))(t)
	gone := func(cmd *exec.Cmd) {
		if _, err := programs.Output(cmd); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { gone(exec.Command("userdel", "--remove", name)) })
	who := programs.Got(user.Lookup(name))(t)
	dir := filepath.Join(who.HomeDir, "try")
	own := func(args ...string) { programs.Got(programs.Output(exec.Command(args[0], args[1:]...)))(t) }
	own("install", "--directory", "--owner", name, "--mode", "0700", dir, filepath.Join(dir, "run"), filepath.Join(dir, "tmp"))
	own("cp", programs.Got(os.Executable())(t), filepath.Join(dir, "tests"))
	own("cp", "--recursive", binaries, filepath.Join(dir, "bin"))
	makePostgres(t)
	for _, read := range []string{"build/containers", "out/images", "out/postgres.tar", "test/containers/postgres.sh"} { // where the tests look
		own("install", "--directory", filepath.Join(dir, filepath.Dir(read)))
		own("cp", "--recursive", filepath.Join("..", "..", read), filepath.Join(dir, read))
	}
	own("chown", "--recursive", name, dir)
	// A machine without udev keeps the device for root: they see one of their own in its place.
	tun := filepath.Join(who.HomeDir, "tun")
	const lent = `[ "$(stat -c %a /dev/net/tun)" = 666 ] || mount --bind "$0" /dev/net/tun 2>/dev/null; exec "$@"`
	if out, err := exec.Command("mknod", "--mode", "0666", tun, "c", "10", "200").CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out)
	}
	as := func(command ...string) *exec.Cmd {
		cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", lent, tun, "setpriv", "--reuid", name, "--regid", name, "--init-groups"}, command...)...)
		cmd.Dir = filepath.Join(dir, "test", "containers")
		cmd.Env = []string{"HOME=" + who.HomeDir, "USER=" + name, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "PORCHLIGHT_CONTAINERS=1",
			"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "TMPDIR=" + filepath.Join(dir, "tmp"), readyMade + "=" + filepath.Join(dir, "bin")}
		return cmd
	}
	t.Cleanup(func() { gone(as("podman", "system", "migrate")) }) // ends what keeps the user's namespace
	try := func(names string) {
		tests := as(filepath.Join(dir, "tests"), "-test.v", "-test.run", "^("+strings.ReplaceAll(names, " ", "|")+")$")
		tests.WaitDelay = programs.Patience
		out, err := tests.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "first visitor's page") {
				fmt.Print("as a normal user, ", line)
			}
		}
		for name := range strings.FieldsSeq(names) {
			if err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
	try(rootless)
	if err := as("sh", "-c", ": <>/dev/net/tun").Run(); err != nil {
		t.Skip("a normal user cannot open /dev/net/tun here, so no container of theirs publishes a port")
	}
	try(published)
}
