package containers

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"porchlight/test/programs"
)

// What a normal user tries, whose podman has no root anywhere. To publish a port takes
// /dev/net/tun; to be named in the computer's own network a control group of the container's,
// which a user has of systemd alone.
const (
	rootless  = "TestASocketThatIsNone TestAContainerWithoutTheSocket"
	published = "TestAContainerAsksByItsLabels TestContainersThatLie"
)

// The same by a user who was made for it: agent, engine and containers are all theirs, and
// rootlessport listens in place of docker-proxy.
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
	own("chown", "--recursive", name, dir)
	as := func(command ...string) *exec.Cmd {
		cmd := exec.Command("setpriv", append([]string{"--reuid", name, "--regid", name, "--init-groups"}, command...)...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + who.HomeDir, "USER=" + name, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "PORCHLIGHT_CONTAINERS=1",
			"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "TMPDIR=" + filepath.Join(dir, "tmp"), readyMade + "=" + filepath.Join(dir, "bin")}
		return cmd
	}
	t.Cleanup(func() { gone(as("podman", "system", "migrate")) }) // ends what keeps the user's namespace
	try := func(names string) {
		tests := as(filepath.Join(dir, "tests"), "-test.v", "-test.run", "^("+strings.ReplaceAll(names, " ", "|")+")$")
		tests.WaitDelay = programs.Patience
		out, err := tests.CombinedOutput()
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
