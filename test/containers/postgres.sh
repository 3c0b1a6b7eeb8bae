#!/bin/bash
# Makes the image of PostgreSQL that the tests use, into out/postgres.tar: Debian's, by
# debootstrap and buildah, since there is no registry here. It takes the settings of the image
# that build/containers names.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/out/postgres.tar
[ ! -e "$out" ] || exit 0
rm -f "$out.new" && mkdir -p "$(dirname "$out")"
root=$(mktemp -d) && trap 'rm -rf --one-file-system "$root"' EXIT
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p)
debootstrap --variant=minbase --include=postgresql bookworm "$root" ${mirror:+"$mirror"} >/dev/null
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,locale,man}
cat >"$root/start" <<'END'
#!/bin/bash
set -eu
bin=$(echo /usr/lib/postgresql/*/bin) data=/var/lib/postgresql/data
if [ ! -e $data/PG_VERSION ]; then
	install -d -m 700 -o postgres $data
	install -m 600 -o postgres /dev/null /run/password
	echo "$POSTGRES_PASSWORD" >/run/password
	setpriv --reuid postgres --regid postgres --clear-groups $bin/initdb --pgdata $data --auth-local trust --auth-host scram-sha-256 \
		--username "$POSTGRES_USER" --pwfile /run/password >/dev/null
	rm /run/password
	echo "host all all all scram-sha-256" >>$data/pg_hba.conf
	echo "create database \"$POSTGRES_DB\"" | setpriv --reuid postgres --regid postgres --clear-groups $bin/postgres --single -D $data postgres >/dev/null
fi
install -d -o postgres /var/run/postgresql
exec setpriv --reuid postgres --regid postgres --clear-groups $bin/postgres -D $data -c 'listen_addresses=*'
END
chmod 755 "$root/start"
container=$(buildah --storage-driver vfs from scratch)
buildah --storage-driver vfs add --quiet "$container" "$root" /
buildah --storage-driver vfs config --entrypoint '["/start"]' --stop-signal SIGINT "$container"
buildah --storage-driver vfs commit --quiet --rm "$container" "oci-archive:$out.new:localhost/postgres:test" >/dev/null
mv "$out.new" "$out" # whole, or not there
