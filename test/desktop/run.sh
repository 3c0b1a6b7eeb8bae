#!/bin/sh
# Runs the real menu-bar app on a private desktop (see doc.go).
#
#   test/desktop/run.sh [go test flags]
#
# PORCHLIGHT_DESKTOP   the program to test (default: bin/porchlight-desktop)
# PORCHLIGHT_SHOTS     where screenshots go (default: out/desktop)
#
# Packages: xvfb dbus at-spi2-core libglib2.0-bin gnome-keyring libsecret-tools dunst
# xfce4-panel xfconf openbox xdotool imagemagick xclip x11-utils
# adwaita-icon-theme fonts-dejavu-core webkit2gtk-driver libwebkit2gtk-4.1-dev gcc
# chromium libnss3-tools iproute2. Not dbus-x11: with it, programs without
# a session bus would start one.
set -eu
cd "$(dirname "$0")"
. ../ready.sh
cd ../..
export PORCHLIGHT_DESKTOP="${PORCHLIGHT_DESKTOP:-$PWD/bin/porchlight-desktop}"
export PORCHLIGHT_SHOTS="${PORCHLIGHT_SHOTS:-$PWD/out/desktop}"
[ -x "$PORCHLIGHT_DESKTOP" ] || not_ready "$PORCHLIGHT_DESKTOP is not there; build it with: make desktop"
has_commands test Xvfb dbus-daemon gnome-keyring-daemon secret-tool dunst dunstctl xfce4-panel openbox xdotool import xclip xprop WebKitWebDriver gcc chromium certutil
mkdir -p "$PORCHLIGHT_SHOTS"
PORCHLIGHT_SHOTS=$(cd "$PORCHLIGHT_SHOTS" && pwd)
exec go test -exec "$PWD/test/desktop/apart.sh" -tags rig -count=1 -timeout 15m -v "$@" ./test/desktop
