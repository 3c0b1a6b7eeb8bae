package agentapi_test

import (
	"net/url"
	"path"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"porchlight/agent/agentapi"
)

// How an app is reached: what is kept, what contradicts itself, and what is refused with a
// sentence that names it.
func TestReachOptions(t *testing.T) {
	t.Parallel()
	type o = agentapi.AppOptions
	for _, tt := range []struct {
		in     o
		scheme string // of what is kept; empty: refused
		socket string
		says   string
	}{
		{in: o{}, scheme: "http"},
		{in: o{Upstream: "auto"}, scheme: "http"},
		{in: o{Upstream: "http"}, scheme: "http"},
		{in: o{Upstream: "https", Pin: true}, scheme: "https"},
		{in: o{Upstream: "h2c"}, scheme: "h2c"},
		{in: o{H2C: true}, scheme: "h2c"},
		{in: o{H2C: true, Upstream: "h2c"}, scheme: "h2c"},
		{in: o{H2C: true, Upstream: "auto"}, scheme: "h2c"},
		{in: o{Upstream: "https", HostHeader: "nas.example:5001"}, scheme: "https"},
		{in: o{HostHeader: "[::1]:80"}, scheme: "http"},
		{in: o{HostHeader: "10.0.0.1"}, scheme: "http"},
		{in: o{HostHeader: "my_host"}, scheme: "http"},
		{in: o{H2C: true, Upstream: "https"}, says: "h2c"},
		{in: o{H2C: true, Upstream: "http"}, says: "h2c"},
		{in: o{Upstream: "HTTPS"}, says: "HTTPS"},
		{in: o{Upstream: "ftp"}, says: "ftp"},
		{in: o{Upstream: "https://127.0.0.1"}, says: "https://"},
		{in: o{Upstream: "unix:"}, says: "unix:"},
		{in: o{Pin: true}, says: "HTTPS"},
		{in: o{Pin: true, Upstream: "h2c"}, says: "HTTPS"},
		{in: o{HostHeader: "a.example", LocalhostHost: true}, says: "localhostHost"},
		{in: o{HostHeader: "a.example\r\nX: y"}, says: "Host"},
		{in: o{HostHeader: "a b"}, says: "Host"},
		{in: o{HostHeader: "a.example/"}, says: "Host"},
		{in: o{HostHeader: "user@a.example"}, says: "Host"},
		{in: o{HostHeader: "a.example:0"}, says: "Host"},
		{in: o{HostHeader: "a.example:65536"}, says: "Host"},
		{in: o{HostHeader: "a.example:"}, says: "Host"},
		{in: o{HostHeader: ":80"}, says: "Host"},
		{in: o{HostHeader: "a..example"}, says: "Host"},
		{in: o{HostHeader: "-a.example"}, says: "Host"},
		{in: o{HostHeader: "[::1"}, says: "Host"},
		{in: o{HostHeader: "[127.0.0.1]"}, says: "Host"},
		{in: o{HostHeader: "ä.example"}, says: "Host"},
		{in: o{HostHeader: strings.Repeat("a", 64) + ".example"}, says: "Host"},
		{in: o{HostHeader: strings.Repeat("a.", 127) + "example"}, says: "Host"},
	} {
		kept, err := tt.in.Checked()
		switch {
		case tt.scheme != "" && (err != nil || kept.Scheme() != tt.scheme || kept.Socket() != tt.socket || kept.Upstream == "auto"):
			t.Errorf("%+v: %+v, %v", tt.in, kept, err)
		case tt.scheme == "" && (agentapi.CodeOf(err) != agentapi.CodeInvalid || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%+v: %v, want a sentence with %q", tt.in, err, tt.says)
		}
	}
}

// Paths of sockets that are an app's, and those that open far more than one.
func TestSocketPaths(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		if err := agentapi.CheckSocketPath("/home/maya/app.sock"); err == nil || !strings.Contains(err.Error(), "Windows") {
			t.Errorf("%v", err)
		}
		return
	}
	for _, path := range []string{
		"/home/maya/app.sock", "/run/gunicorn.sock", "/run/php/php8.2-fpm.sock", "/home/maya/docker/web.sock", "/srv/systemd-notes/app.sock",
		"/run/user/1000/notes/app.sock", "/home/maya/porchlight-notes/app.sock", "/tmp/x", "/home/maya/a b.sock",
	} {
		kept, err := agentapi.AppOptions{Upstream: "unix:" + path}.Checked()
		if err != nil || kept.Socket() != path || kept.Scheme() != agentapi.UpstreamHTTP {
			t.Errorf("%s: %+v, %v", path, kept, err)
		}
	}
	for _, path := range []string{
		"", "app.sock", "./app.sock", "/", "/home/../x", "/home//x", "/home/x/", "/home/./x", "@abstract", "\x00abstract", "/home/a\nb", "/" + strings.Repeat("a", 107),
		"/run/docker.sock", "/var/run/docker.sock", "/home/maya/.docker/run/docker.sock", "/run/user/1000/podman/podman.sock", "/run/containerd/s/0123",
		"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock", "/run/buildkit/buildkitd.sock",
		"/run/dbus/system_bus_socket", "/run/user/1000/bus", "/tmp/dbus-Ab12Cd", "/run/user/1000/dbus-1/services",
		"/tmp/ssh-AbCdEf/agent.123", "/home/maya/.ssh/agent/s.1", "/run/user/1000/keyring/ssh", "/run/user/1000/gnupg/S.gpg-agent", "/home/maya/.gnupg/S.keyboxd",
		"/home/maya/snap/bitwarden/current/.bitwarden-ssh-agent.sock", "/private/tmp/com.apple.launchd.AbCdEf/Listeners", "/home/maya/ssh-agent-work",
		"/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket", "/var/folders/x/podman/podman-machine-default-api.sock",
		"/run/user/1000/gcr/ssh", "/home/maya/.1password/agent.sock", "/run/systemd/private", "/run/user/1000/systemd/notify",
		"/tmp/.X11-unix/X0", "/run/user/1000/wayland-0", "/run/user/1000/pipewire-0", "/run/user/1000/pulse/native",
		"/run/user/1000/porchlight-0123456789/owner.sock", "/home/maya/control/admin.sock", "/home/maya/desktop.sock",
	} {
		if _, err := (agentapi.AppOptions{Upstream: "unix:" + path}).Checked(); agentapi.CodeOf(err) != agentapi.CodeInvalid || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// Whatever is kept can be sent as Host, or be dialled as it is.
func FuzzReach(f *testing.F) {
	for _, s := range []string{"a.example:80", "[::1]:1", "unix:/home/maya/app.sock", "https", "unix://x", "a\r\nb", "[::1%eth0]", "unix:/a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if o, err := (agentapi.AppOptions{HostHeader: s}).Checked(); err == nil && s != "" {
			u, bad := url.Parse("http://" + o.HostHeader + "/")
			if bad != nil || u.Host != s || u.Hostname() == "" || u.User != nil || !httpguts.ValidHostHeader(s) {
				t.Errorf("%q is sent as Host: %v", s, bad)
			}
		}
		if o, err := (agentapi.AppOptions{Upstream: s}).Checked(); err == nil && o.Socket() != "" {
			if at := o.Socket(); !path.IsAbs(at) || path.Clean(at) != at || strings.ContainsAny(at, "\x00\n") || len(at) > 107 {
				t.Errorf("%q is dialled", at)
			}
		}
	})
}
