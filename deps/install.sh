#!/bin/sh
# Installs the Debian packages of the named groups of deps/packages.tsv that are not there yet.
#
#   sh deps/install.sh [build] [test] [bench]      (no group: build)
#
# As root it calls apt-get, otherwise through sudo; where neither works it prints the one line to
# run and exits with 1. With nothing missing it is one dpkg-query and prints nothing. Services that
# come with a package (redis-server's) are neither started nor left enabled, so port 6379 stays
# free; a service that was installed before is never touched.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- build
groups=" $* "

tab=$(printf '\t')
wanted=
while IFS="$tab" read -r group package _; do
    case $group in '' | '#'*) continue ;; esac
    case $groups in *" $group "*) wanted="$wanted $package" ;; esac
done <"$here/packages.tsv"
[ -n "$wanted" ] || {
    echo "deps/install.sh: no group named$groups in packages.tsv" >&2
    exit 2
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    echo "deps/install.sh: no Debian system; what is needed here has Debian names:$wanted" >&2
    exit 0
fi

# One query; a package that is removed but not purged does not count as installed.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p') || true
missing=
for package in $wanted; do
    case " $missing " in *" $package "*) continue ;; esac
    printf '%s\n' "$installed" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
elif command -v sudo >/dev/null 2>&1 && [ -t 0 ] && [ -t 2 ]; then
    as_root=sudo
else
    echo "Packages are missing and this user may not install them. Run as root:" >&2
    echo "    apt-get update && $line" >&2
    exit 1
fi

echo "Installing$missing"
[ -z "$as_root" ] || echo "  (as root, through $as_root)"

# policy-rc.d is Debian's switch for "install, but start nothing"; one that exists is the owner's.
policy=/usr/sbin/policy-rc.d
made_policy=
new_service=
case $missing in *redis-server*) new_service=redis-server.service ;; esac
clean_up() {
    [ -z "$made_policy" ] || $as_root rm -f "$policy"
    made_policy=
}
trap clean_up EXIT
trap 'exit 130' INT TERM
if [ -n "$new_service" ] && [ ! -e "$policy" ]; then
    made_policy=1
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
fi

apt_get() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null
}
apt_get update || echo "apt-get update failed; trying with the lists there are" >&2
if ! apt_get install -y --no-install-recommends $missing; then
    echo "apt-get could not install them. Once that is mended, this is the line:" >&2
    echo "    apt-get update && $line" >&2
    exit 1
fi

# We brought the service in a moment ago for its program only: it shall not start at the next boot.
if [ -n "$new_service" ]; then
    $as_root update-rc.d "${new_service%.service}" disable >/dev/null 2>&1 || true
    $as_root deb-systemd-helper disable "$new_service" >/dev/null 2>&1 || true
fi
