#!/bin/bash
# Has flatpak-builder read the manifest beside this, runs its commands on a package without
# the runtime, into a directory in the place of /app, and looks at what the Flatpak would
# show of itself. usage: build/flatpak/check.sh FILE.deb
set -euo pipefail
manifest=$(realpath "$(dirname "$0")")/app.porchlight.desktop.yml
command -v flatpak-builder >/dev/null || { echo "flatpak-builder is not installed, so nobody looked over $manifest" >&2; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
id=app.porchlight.desktop app=$dir/app
mkdir "$dir/build"
cp "$1" "$dir/build/porchlight.deb"
(cd "$dir" && flatpak-builder --show-manifest "$manifest") >"$dir/read" 2>"$dir/said" || { cat "$dir/said" >&2; exit 1; }
if grep -i 'unknown property' "$dir/said" >&2; then exit 1; fi
node -e 'for (const m of JSON.parse(require("fs").readFileSync(0)).modules) console.log(m["build-commands"].join("\n"))' <"$dir/read" |
	sed "s#/app/#$app/#g" >"$dir/commands"
(cd "$dir/build" && sh -eu "$dir/commands")

"$app/bin/porchlight" --version >/dev/null
desktop-file-validate "$app/share/applications/$id.desktop"
appstreamcli validate-tree --no-net --explain "$app"
# A Flatpak shows nothing that is not called as it is.
for named in "share/applications/$id.desktop:^Icon=$id\$" "share/metainfo/$id.metainfo.xml:>$id</icon>"; do
	grep -q "${named#*:}" "$app/${named%%:*}" || { echo "$named is not there" >&2; exit 1; }
done
others=$(find "$app/share" -type f ! -name "$id.*")
[ -z "$others" ] || { echo "not called $id: $others" >&2; exit 1; }
