# What the run.sh of the folders beside it begin with, in bash or sh: each sources it
# in its own folder.

# has_commands SET COMMAND...: they are there; build/setup.sh SET installs them.
has_commands() {
	missing= set_up=$1
	shift
	for command in "$@"; do
		command -v "$command" >/dev/null || missing="$missing $command"
	done
	[ -z "$missing" ] || not_ready "missing:$missing; install them with: build/setup.sh $set_up"
}

# has_programs: those under test are in bin/, or in $PORCHLIGHT_PROGRAMS.
has_programs() {
	export PORCHLIGHT_PROGRAMS="${PORCHLIGHT_PROGRAMS:-$PWD/../../bin}"
	for program in porchlight porchlight-control; do
		[ -x "$PORCHLIGHT_PROGRAMS/$program" ] || not_ready "$PORCHLIGHT_PROGRAMS/$program is not there; build it with: make cli"
	done
}

# has_packages FOLDER: its npm packages are those of its package-lock.json. Another
# test may ask for the same at the same time.
has_packages() (
	cd "$1"
	exec 9<package-lock.json
	flock 9
	if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
		touch node_modules/.package-lock.json
	fi
)

not_ready() {
	echo "run.sh: $1" >&2
	exit 2
}
