#!/bin/sh
# Installs what this machine lacks, and says so first.
#
#   build/setup.sh cli      Go: enough for the command line and the agent
#   build/setup.sh desktop  cli, and what the menu-bar app is built from
#   build/setup.sh test     desktop, and what the tests run against
#   build/setup.sh panels   test, and panels beside Xfce's
#   build/setup.sh screenshots  test, and what makes the film of the documentation
#   build/setup.sh apps     test, and the apps of docs/recipes.md that Debian has
#   build/setup.sh package  desktop, and what packs it
#   build/setup.sh bench    cli, and the peers the benchmarks compare with
#   build/setup.sh containers  cli, and Debian's podman with what makes its images
#   build/setup.sh load     cli, and what the load model runs: PostgreSQL, Patroni, etcd
#
# Debian 12 and its relatives, as root or as a user with sudo. Go and Node are
# taken as they are when they are new enough; otherwise they go to .tools/ in
# this checkout and nowhere else.
set -eu

want=${1:-test}
cd "$(dirname "$0")/.."
tools=$PWD/.tools
export PATH="$tools/go/bin:$tools/node/node_modules/.bin:$PATH"

go_version=$(sed -n 's/^go \([0-9.]*\)$/\1/p' go.mod)
node_version=22.23.3
npm_version=11.19.1

say() { printf '%s\n' "$*" >&2; }
fail() { say "setup: $*"; exit 1; }

# Debian packages -------------------------------------------------------------

packages="ca-certificates curl git"
case $want in
cli) ;;
containers) packages="$packages podman podman-compose buildah debootstrap runc netavark aardvark-dns iptables slirp4netns uidmap" ;;
load) packages="$packages postgresql patroni etcd-server" ;;
bench) packages="$packages haproxy nginx libnginx-mod-stream nghttp2-client postgresql xvfb dbus chromium" ;;
desktop | package | test | panels | screenshots | apps)
	packages="$packages gcc libc6-dev pkg-config libgtk-3-dev libwebkit2gtk-4.1-dev libnss3-tools xdg-utils"
	;;
*) fail "say cli, desktop, package, test, panels, screenshots, apps, bench, containers or load, not '$want'" ;;
esac
[ "$want" != package ] || packages="$packages nsis debootstrap iproute2 lintian appstream desktop-file-utils rpm flatpak-builder"
[ "$want" != screenshots ] || packages="$packages ffmpeg"
case $want in test | panels | screenshots | apps)
	# A screen, a session bus, a keyring, notifications and a panel; a browser;
	# real apps and tools the tests use.
	packages="$packages
		xvfb xauth x11-utils xdotool imagemagick xclip dbus libglib2.0-bin procps psmisc
		at-spi2-core gnome-keyring libsecret-tools dunst xfce4-panel xfconf openbox adwaita-icon-theme fonts-dejavu-core fonts-inter iproute2
		bind9 bind9-dnsutils unbound
		webkit2gtk-driver chromium openssl radicale postgresql php-cli systemd
		python3-requests-oauthlib python3-authlib python3-jwt python3-cryptography openjdk-17-jdk-headless
		nginx libnginx-mod-stream nghttp2-client apache2-bin openssh-client openssh-server rsync prometheus minisign shellcheck"
	;;
esac
[ "$want" != panels ] || packages="$packages lxqt-panel mate-panel mate-indicator-applet ayatana-indicator-application gnome-shell gnome-shell-extension-appindicator dconf-service sway waybar wl-clipboard orca speech-dispatcher"
if [ "$want" = apps ]; then
	# Servers without the packages that would start them as services, where there are such.
	packages="$packages
		rclone python3-caldav python3-django python3-flask python3-fastapi python3-uvicorn jupyter-notebook jupyterhub ruby-rails puma
		transmission-daemon syncthing icecast2 mpv firefox-esr cockpit-ws cockpit-bridge cockpit-system
		wordpress wordpress-theme-twentytwentythree libapache2-mod-php8.2 php8.2-mysql mariadb-server-core mariadb-client-core"
fi

have_go() {
	command -v go >/dev/null || return 1
	# A newer toolchain than the one installed is fetched by go itself when it may.
	v=$(go env GOVERSION 2>/dev/null) || return 1
	[ "$(printf '%s\n%s\n' "go$go_version" "$v" | sort -V | head -n 1)" = "go$go_version" ]
}
have_node() {
	command -v node >/dev/null && command -v npm >/dev/null || return 1
	node -e 'const [a,b]=process.versions.node.split(".").map(Number);process.exit(a>22||(a===22&&b>=12)||(a===20&&b>=19)?0:1)' || return 1
	case $(npm --version) in 11.* | 1[2-9].*) ;; *) return 1 ;; esac
}

# What fetches Go and Node, where they are missing or too old.
have_go || packages="$packages golang-go"
case $want in desktop | package | test | panels | screenshots | apps) node=wanted ;; *) node= ;; esac
if [ -n "$node" ] && ! have_node; then
	packages="$packages nodejs npm"
fi

missing=
for p in $packages; do
	state=$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || true)
	[ "$state" = installed ] && continue
	case $p in
	# Present by another way is good enough.
	nodejs) command -v node >/dev/null && continue ;;
	npm) command -v npm >/dev/null && continue ;;
	golang-go) command -v go >/dev/null && continue ;;
	chromium) [ -x /usr/bin/chromium ] && continue ;;
	esac
	missing="$missing $p"
done

if [ -n "$missing" ]; then
	command -v apt-get >/dev/null || fail "this needs apt-get. Install by hand:$missing"
	sudo=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || fail "run this as root, or install sudo. It would install:$missing"
		sudo=sudo
	fi
	# A server that comes along is not started: tests start their own, and nobody
	# asked for a web server on port 80.
	guard=/usr/sbin/policy-rc.d
	if [ ! -e "$guard" ]; then
		trap '$sudo rm -f "$guard"' EXIT
		trap 'exit 1' HUP INT TERM
		printf '#!/bin/sh\nexit 101\n' | $sudo tee "$guard" >/dev/null
		$sudo chmod 755 "$guard"
	fi
	say "Installing Debian packages:$missing"
	# apt waits for the lock of dpkg by itself, and not for the one of its lists, which the
	# system's own update holds on a machine that was just started.
	tries=120 waits="apt updates its lists already: waiting for that"
	until said=$($sudo env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq update 2>&1); do
		case $said in *"Could not get lock "*/lists/lock*) tries=$((tries - 1)) ;; *) tries=0 ;; esac
		[ "$tries" -gt 0 ] || fail "apt-get update: $said"
		[ -z "$waits" ] || say "$waits"
		waits=
		sleep 5
	done
	[ -z "$said" ] || say "$said"
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 \
		install -y --no-install-recommends $missing >/dev/null
fi

# Go --------------------------------------------------------------------------

if ! have_go; then
	# Any Go can fetch a newer one as a module, checked against the checksum
	# database; the module cache drops the executable bits.
	say "Installing Go $go_version into .tools/go"
	os=$(go env GOHOSTOS) arch=$(go env GOHOSTARCH)
	module="golang.org/toolchain@v0.0.1-go$go_version.$os-$arch"
	scratch=$(mktemp -d)
	dir=$(cd "$scratch" && GOTOOLCHAIN=local GOFLAGS= go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	rmdir "$scratch"
	[ -n "$dir" ] || fail "could not fetch $module"
	rm -rf "$tools/go" && mkdir -p "$tools"
	cp -R "$dir" "$tools/go" && chmod -R u+w "$tools/go"
	chmod +x "$tools"/go/bin/* "$tools/go/pkg/tool/${os}_$arch"/*
	hash -r # the shell remembers the old one
	have_go || fail "Go $go_version was installed but does not run"
fi

# Node, for the window's front end -------------------------------------------------

if [ -n "$node" ] && ! have_node; then
	say "Installing Node $node_version and npm $npm_version into .tools/node"
	mkdir -p "$tools/node"
	npm install --prefix "$tools/node" --no-save --no-audit --no-fund --loglevel=error \
		"node@$node_version" "npm@$npm_version" >&2
	hash -r
	have_node || fail "Node $node_version was installed but does not run"
fi
