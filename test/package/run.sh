#!/bin/bash
# Installs the Debian packages of out/ on a clean Debian, uses them as a new
# user, takes them away again, and looks at what is left. The clean system is a
# debootstrap root below out/; chroot and mounts need root (or sudo).
#
# usage: test/package/run.sh [bookworm|trixie]    after make package
set -euo pipefail
cd "$(dirname "$0")/../.."

. test/package/root.sh
main=$(newest porchlight) server=$(newest porchlight-control)
enter "${1:-bookworm}"

say "installing"
cp "$main" "$root/tmp/porchlight.deb"
cp "$server" "$root/tmp/porchlight-control.deb"
install /tmp/porchlight.deb /tmp/porchlight-control.deb
# For this test only: an app to publish, a visitor, a screen.
install python3 curl xvfb xauth dbus desktop-file-utils man-db systemd

say "what was installed"
as_maya 'porchlight --version && porchlight-desktop --version && porchlight-control version'
in_root desktop-file-validate /usr/share/applications/porchlight.desktop
in_root XDG_RUNTIME_DIR=/tmp systemd-analyze verify --man=no --user /usr/lib/systemd/user/porchlight.service
in_root systemd-analyze verify --man=no /usr/lib/systemd/system/porchlight-control.service
as_maya 'man -w porchlight porchlight-publish porchlight-desktop porchlight-control >/dev/null'
as_maya 'bash -n /usr/share/bash-completion/completions/porchlight'

say "the agent publishes an app, and a visitor opens it"
as_maya '
set -eu
data=$HOME/.local/share/porchlight
mkdir -p www && echo "hello from maya" >www/index.html
python3 -m http.server --bind 127.0.0.1 --directory www 18000 >/dev/null 2>&1 & app=$!
porchlight agent --local --api 127.0.0.1:0 --https 127.0.0.1:18443 >agent.log 2>&1 & agent=$!
for i in $(seq 100); do porchlight status >/dev/null 2>&1 && break; kill -0 $agent || { cat agent.log; exit 1; }; sleep 0.1; done
porchlight publish notes --label Notes --port 18000
porchlight approve notes
link=$(porchlight open notes --print)
curl -sS --fail --cacert $data/ca/root.pem -c jar -b jar -L "$link" | grep -q "hello from maya"
kill $agent; wait $agent; kill $app
'

say "the menu-bar app starts, and answers"
as_maya '
set -eu
setsid xvfb-run -a dbus-run-session -- porchlight-desktop --secret-file --hidden --api 127.0.0.1:0 --https 127.0.0.1:18443 >desktop.log 2>&1 & desktop=$!
for i in $(seq 100); do porchlight apps --json 2>/dev/null | grep -q notes && break; kill -0 $desktop || break; sleep 0.1; done
porchlight apps --json | grep -q notes || { cat desktop.log; exit 1; }
kill -- -$desktop # the screen and the session bus with it
wait $desktop || true # how xvfb-run ends says nothing
'

say "an upgrade restarts the service that runs, and removal stops it"
mkdir -p "$root/run/systemd/system" # as where systemd runs; what it is asked is written down
cat >"$root/usr/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/tmp/asked
END
asked() { grep -qxE "$1" "$root/tmp/asked" || { echo "systemd was not asked $1 but:"; cat "$root/tmp/asked"; exit 1; }; }
in_root apt-get -qq install -y --reinstall /tmp/porchlight-control.deb >/dev/null 2>&1
asked '.*try-restart porchlight-control.service'
mkdir -p "$root/var/lib/private/porchlight" "$root/etc/systemd/system/multi-user.target.wants"
ln -s /usr/lib/systemd/system/porchlight-control.service "$root/etc/systemd/system/multi-user.target.wants/" # enabled

say "removing"
in_root apt-get -qq purge -y porchlight porchlight-control >"$root/tmp/purged"
asked '.*stop porchlight-control.service'
grep -q 'porchlight-control: /var/lib/private/porchlight stays' "$root/tmp/purged" || { cat "$root/tmp/purged"; exit 1; }
rmdir "$root/var/lib/private/porchlight" # which holds the server's data, and stays
left=$(left_behind)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
as_maya 'test -s .local/share/porchlight/agent.db' # the owner's own stays
