#!/bin/bash
# Plays the owner's story with the menu-bar app on a clean Debian, from its package: a panel
# shows the lamp, an app asks, its owner approves, a visitor opens it; once more without any
# panel, as in GNOME; a later package in its place; and its removal. Prints one row, as
# docs/releases.md has it. A picture of each screen is in out/desktops.
#
# usage: test/package/desktop.sh [bookworm|trixie]    after make package
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/package/root.sh
main=$(newest porchlight) shots=${PORCHLIGHT_SHOTS:-$PWD/out/desktops}
release=${1:-bookworm}
mkdir -p "$shots"
command -v convert >/dev/null || { echo "imagemagick is missing. Run build/setup.sh test." >&2; exit 1; }
enter "$release"

say "installing"
cp "$main" "$root/tmp/porchlight.deb"
install /tmp/porchlight.deb
# A screen, a panel that shows icons, a visitor, and an app.
install xvfb dbus dbus-daemon xfce4-panel xfconf openbox procps x11-utils libglib2.0-bin python3 curl fonts-dejavu-core adwaita-icon-theme
version=$(as_maya 'porchlight --version')

# The same program as a later version: one letter of what it calls itself, and of the package.
later=$root/tmp/later
in_root dpkg-deb -R /tmp/porchlight.deb /tmp/later
is=${version##* }
becomes=${is%?}$([ "${is: -1}" = z ] && echo y || echo z)
LC_ALL=C sed -i "s/${is//./\\.}/$becomes/g" "$later"/usr/bin/porchlight "$later"/usr/bin/porchlight-desktop
sed -i "s/^Version: .*/&+later/" "$later/DEBIAN/control"
rm -f "$later/DEBIAN/md5sums"
in_root dpkg-deb --build --root-owner-group /tmp/later /tmp/later.deb >/dev/null

# What maya's desktop is. It stays until the root goes.
cat >"$root/usr/local/bin/session" <<'END'
#!/bin/bash
# session begin: a screen and a bus. session panel: a panel. session app: the menu bar.
set -eu
export DISPLAY=:7 DBUS_SESSION_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus NO_AT_BRIDGE=1 XFCE_PANEL_MIGRATE_DEFAULT=1 LIBGL_ALWAYS_SOFTWARE=1
until_so() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "never: $*" >&2; cat "$HOME"/*.log >&2; exit 1; }
bus() { gdbus call --session --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus --method "org.freedesktop.DBus.$@"; }
hosted() { bus NameHasOwner org.kde.StatusNotifierWatcher | grep -q true; }
items() { gdbus call --session --dest org.kde.StatusNotifierWatcher --object-path /StatusNotifierWatcher --method org.freedesktop.DBus.Properties.Get org.kde.StatusNotifierWatcher RegisteredStatusNotifierItems; }
shown() { items | grep -q StatusNotifierItem; }
visible() { xwininfo -name Porchlight | grep -q 'IsViewable'; }
case $1 in
begin)
	mkdir -p screen
	setsid Xvfb :7 -screen 0 1100x700x24 -nolisten tcp -fbdir "$HOME/screen" >Xvfb.log 2>&1 &
	until_so test -S /tmp/.X11-unix/X7
	setsid dbus-daemon --session --nofork --address="$DBUS_SESSION_BUS_ADDRESS" >bus.log 2>&1 &
	until_so bus ListNames
	setsid openbox >openbox.log 2>&1 &
	;;
panel)
	setsid xfce4-panel --disable-wm-check >panel.log 2>&1 &
	until_so hosted
	;;
app)
	shift
	setsid porchlight-desktop --secret-file --api 127.0.0.1:0 --https 127.0.0.1:18443 "$@" >desktop.log 2>&1 &
	until_so porchlight status
	;;
again) porchlight-desktop ;;
quit)
	pkill -TERM -u maya -x porchlight-desk # 15 letters of it
	while pgrep -u maya -x porchlight-desk >/dev/null; do sleep 0.1; done
	;;
panel-ends)
	pkill -KILL -u maya -f xfce4-panel || :
	until_so eval '! hosted'
	;;
*) until_so "$1" ;;
esac
END
chmod 755 "$root/usr/local/bin/session"
shot() { # NAME, once the screen is drawn
	sleep 2
	convert "xwd:$root/home/maya/screen/Xvfb_screen0" "$shots/$release-$1.png"
}
row=(installs) # what ran
visits='
link=$(porchlight open notes --print)
curl -sS --fail --cacert .local/share/porchlight/ca/root.pem -c jar -b jar -L "$link" | grep -q "hello from maya"'

say "$version: a panel shows the lamp, an app asks, its owner approves, a visitor opens it"
as_maya '
set -eu
mkdir -p www && echo "hello from maya" >www/index.html
setsid python3 -m http.server --bind 127.0.0.1 --directory www 18000 >app.log 2>&1 &
session begin
session panel
session app
session shown
porchlight publish notes --label Notes --port 18000
porchlight apps --json | grep -q "\"pending\""
session visible'
row+=(starts tray)
shot asks
as_maya "set -eu
porchlight approve notes
$visits"
shot approved
row+=(story)

say "without any panel its window opens by itself, and all goes on"
as_maya 'set -eu
session quit
session panel-ends
echo "{\"welcomed\": true, \"trustOffered\": true}" >.local/share/porchlight/desktop.json # else it opens anyway
session app
session visible'
shot trayless
as_maya "set -eu
porchlight publish wiki --label Wiki --port 18000
porchlight approve wiki
$visits"
row+=('story without a tray')

say "a later version, while it runs"
install /tmp/later.deb
as_maya "set -eu
porchlight upgrade --check
porchlight --version | grep -qF '$becomes'
session again
session quit
session app
porchlight apps --json | grep -q wiki
$visits"
shot later
row+=(upgrade)

say "removing"
as_maya 'session quit'
in_root apt-get -qq purge -y porchlight >/dev/null
left=$(left_behind)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
as_maya 'test -s .local/share/porchlight/agent.db'
row+=(removal)
printf '| Debian %s |' "$(cat "$base/etc/debian_version")"
printf ' %s |' "${row[@]}"
echo
