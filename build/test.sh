#!/bin/bash
# Runs the parts of `make test`, all of them whatever the first ones find, and
# sums up at the end. The programs they use are built before.
#
#   build/test.sh PART...      a part is a target of the Makefile
#
# Two run at a time: one line takes parts from the front of the list, one from its
# end. With those that compute in front and those that mostly wait at the end, the
# waiting costs nothing. What a part says is printed whole, when it is over.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
built=(frontend cli race desktop)

run() { # PART
	local began=$SECONDS how=passed
	flock "$out/lock" echo "== make $1 has begun"
	# What was built is not looked at again: a part may be using it.
	make --no-print-directory "${built[@]/#/--old-file=}" "$1" </dev/null >"$out/$1/said" 2>&1 || how=FAILED
	{
		flock 9
		echo "== make $1"
		cat "$out/$1/said"
		printf '%-16s %s  %d s\n' "$1" $how $((SECONDS - began)) | tee -a "$out/table"
	} 9>"$out/lock"
	rm "$out/$1/said"
}

# Whoever makes a part's folder runs it.
line() {
	local part
	for part; do
		if mkdir "$out/$part" 2>/dev/null; then run "$part"; fi
	done
}

stop() {
	trap - HUP INT TERM
	kill -TERM -- "${lines[@]/#/-}" 2>/dev/null
	wait
	tail -n 100 "$out"/*/said 2>/dev/null
	exit 1
}

make --no-print-directory "${built[@]}" || exit
parts=("$@") backwards=() lines=()
for part; do backwards=("$part" "${backwards[@]}"); done
set -m # each line is a process group, which can be ended
trap stop HUP INT TERM
line "${parts[@]}" &
lines+=($!)
line "${backwards[@]}" &
lines+=($!)
wait
echo
cat "$out/table"
failed=$(grep -c FAILED "$out/table")
echo "$(grep -c ' passed ' "$out/table") passed, $failed failed"
[ "$failed" = 0 ] && [ "$(wc -l <"$out/table")" = $# ]
