package agentapi

import (
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// maxSocketPath is the kernel's own limit in bytes, less the end of the text.
const maxSocketPath = 107

// CheckSocketPath refuses what no app of the owner listens at. Whose the socket is, and
// who may change its directories, is looked at when it is dialled. Its error is a
// sentence.
func CheckSocketPath(file string) error {
	control := strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f })
	switch {
	case runtime.GOOS == "windows":
		return Errorf(CodeInvalid, "Apps cannot be reached at unix sockets on Windows, where nobody tells whose one is. Have the app listen on a port.")
	case !path.IsAbs(file) || path.Clean(file) != file || file == "/" || control:
		return Errorf(CodeInvalid, "%.80q is not the whole path of a socket. Write it from the root, like unix:/home/maya/notes/app.sock, without . and .. in it.", file)
	case len(file) > maxSocketPath:
		return Errorf(CodeInvalid, "The path of the socket has %d bytes; %d is the most.", len(file), maxSocketPath)
	}
	if what := NotAnApps(file); what != "" {
		return Errorf(CodeInvalid, "%.120q is a socket of %s, which opens far more than one app. Porchlight does not publish it.", file, what)
	}
	return nil
}

// Whose sockets are no apps.
const (
	ofPorchlight = "Porchlight itself"
	ofBus        = "D-Bus"
	ofContainers = "a container engine"
	ofKeys       = "an agent that keeps keys or passwords"
	ofSystem     = "the system"
	ofScreen     = "the screen or the sound"
)

// socketNames are names of sockets, whichever directory they are in.
var socketNames = map[string]string{
	"owner.sock": ofPorchlight, "admin.sock": ofPorchlight, "desktop.sock": ofPorchlight,
	"bus": ofBus, "system_bus_socket": ofBus, "dbus.sock": ofBus, "dbus.socket": ofBus,
	"docker.sock": ofContainers, "docker.raw.sock": ofContainers, "podman.sock": ofContainers, "containerd.sock": ofContainers,
	"containerd.sock.ttrpc": ofContainers, "crio.sock": ofContainers, "cri-dockerd.sock": ofContainers, "buildkitd.sock": ofContainers,
	"lxd.socket": ofContainers, "libvirt-sock": ofContainers, "podman-api.sock": ofContainers,
	"ssh-agent": ofKeys, "ssh-agent.sock": ofKeys, "ssh-agent.socket": ofKeys, "ssh_auth_sock": ofKeys, "openssh_agent": ofKeys,
	"agent.sock": ofKeys,
}

// socketForms are names that differ from one to the next: ssh's agent.PID, GnuPG's
// S.gpg-agent, a screen's.
var socketForms = []struct {
	form *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`^agent\.[0-9]+$`), ofKeys},
	{regexp.MustCompile(`^S\.(gpg-agent|scdaemon|dirmngr|keyboxd|uiserver)`), ofKeys},
	{regexp.MustCompile(`(ssh|gpg|tpm|yubikey)[-_]agent`), ofKeys},
	{regexp.MustCompile(`^podman-machine-.+\.sock$`), ofContainers},
	{regexp.MustCompile(`^dbus-[0-9A-Za-z]+$`), ofBus},
	{regexp.MustCompile(`^(wayland|pipewire|pulse)-[0-9]`), ofScreen},
}

// socketDirs are directories of others, wherever they are.
var socketDirs = map[string]string{
	".X11-unix": ofScreen, ".ICE-unix": ofScreen, ".gnupg": ofKeys, ".ssh": ofKeys, ".1password": ofKeys,
}

// ownSocketDir is the name of the directory that the owner's socket is in.
var ownSocketDir = regexp.MustCompile(`^porchlight-[0-9a-f]{10}$`)

// runDirs are directories of others below /run, and below each user's part of it.
var runDirs = map[string]string{
	"dbus": ofBus, "dbus-1": ofBus, "at-spi": ofBus, "gvfsd": ofSystem,
	"docker": ofContainers, "podman": ofContainers, "containerd": ofContainers, "crio": ofContainers, "buildkit": ofContainers, "k3s": ofContainers,
	"lxd": ofContainers, "incus": ofContainers, "libvirt": ofContainers,
	"keyring": ofKeys, "gnupg": ofKeys, "gcr": ofKeys, "ssh-agent": ofKeys, "kwallet5.socket": ofKeys, "p11-kit": ofKeys,
	"systemd": ofSystem, "udev": ofSystem, "NetworkManager": ofSystem, "polkit": ofSystem, "acpid.socket": ofSystem, "snapd.socket": ofSystem,
	"pulse": ofScreen, "pipewire": ofScreen,
}

// NotAnApps says whose socket a path is known to be, if it is no app's.
func NotAnApps(file string) string {
	names := strings.Split(strings.TrimPrefix(file, "/"), "/")
	last := names[len(names)-1]
	if what := whoseSocket(last); what != "" {
		return what
	}
	if last == "unix.socket" && len(names) > 1 && slices.Contains([]string{"lxd", "incus"}, names[len(names)-2]) {
		return ofContainers // below /var/lib or /var/snap
	}
	for _, name := range names {
		if strings.HasPrefix(name, "com.apple.launchd.") {
			return ofKeys
		}
		if what := socketDirs[name]; what != "" {
			return what
		}
		if ownSocketDir.MatchString(name) {
			return ofPorchlight
		}
	}
	return whoseBelowRun(names)
}

// whoseSocket says whose a socket is by its own name.
func whoseSocket(name string) string {
	if what := socketNames[name]; what != "" {
		return what
	}
	for _, f := range socketForms {
		if f.form.MatchString(name) {
			return f.what
		}
	}
	return ""
}

// whoseBelowRun says whose a path below /run is, or below each user's part of it.
func whoseBelowRun(names []string) string {
	if names[0] == "var" && len(names) > 1 {
		names = names[1:]
	}
	if names[0] != "run" || len(names) < 2 {
		return ""
	}
	below := names[1:]
	if slices.Contains([]string{"user", "lock"}, below[0]) && len(below) > 2 {
		below = below[2:]
	}
	return runDirs[below[0]]
}
