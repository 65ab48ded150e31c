#!/bin/sh
# Fetches what the build needs and the repository does not hold, into build/deps. No root needed.
#
#   tools/deps.sh [greatest] [simde] [stb]
#
#   greatest  build/deps/greatest.h     the test framework (ISC), 1.5.0, pinned by its sha256
#   simde     build/deps/simde/         SIMD intrinsics on every CPU (MIT), headers only
#   stb       build/deps/stb/stb_ds.h   hash maps and growing arrays for the tools (public domain or MIT)
#
# Each is looked for in this order: in build/deps; in the folder named by DEPS_FROM (for machines without a network);
# among the system's headers; at upstream (greatest); in Debian's archive, through the machine's own mirror.
# Everything is made under a temporary name and renamed when whole, so two runs at once do no harm.
set -eu
cd "$(dirname "$0")/.."
out=build/deps
greatest_sha=1292593d95c35eeccc89ffa1c91d6fe53b49f81cbf2c2b7758842b7f3186fcc2
greatest_url=https://github.com/silentbicycle/greatest/raw/v1.5.0/greatest.h
greatest_suite=trixie        # no binary package has greatest.h; the source of dunst in this suite carries the very file
greatest_source=dunst

say() { echo "deps: $*"; }
die() { echo "mtan: tools/deps.sh: $*" >&2; exit 2; }
have() { command -v "$1" >/dev/null 2>&1; }

sha256_is() { # file, sum
    [ -f "$1" ] || return 1
    if have sha256sum; then sum=$(sha256sum <"$1"); else sum=$(shasum -a 256 <"$1"); fi
    [ "${sum%% *}" = "$2" ]
}

# The mirrors of Debian's main archive that this machine's own apt sources name, one per line.
mirrors() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
        sed 's/#.*//' | tr ' \t' '\n\n' | grep -E '^(https?|file)://.*/debian/?$' | sort -u
}

# apt_private SUITE COMMAND...: apt-get with a configuration, lists and cache of its own, in the temporary folder.
# Tries one mirror after another; downloads land in $tmp/apt.
apt_private() {
    suite=$1; shift
    have apt-get || return 1
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ ! -f $keys ] || signed="[signed-by=$keys]"
    mkdir -p "$tmp/apt/lists/partial" "$tmp/apt/archives/partial" "$tmp/apt/parts"
    cat >"$tmp/apt/conf" <<EOT
Dir::Etc::sourcelist "$tmp/apt/list";
Dir::Etc::sourceparts "$tmp/apt/parts";
Dir::Etc::preferences "$tmp/apt/parts/none";
Dir::Etc::preferencesparts "$tmp/apt/parts";
Dir::State::lists "$tmp/apt/lists";
Dir::Cache "$tmp/apt";
APT::Sandbox::User "$(id -un)";
Acquire::Retries "1";
Acquire::http::Timeout "20";
EOT
    for mirror in $(mirrors); do
        for kind in deb deb-src; do echo "$kind ${signed-} $mirror $suite main"; done >"$tmp/apt/list"
        if (cd "$tmp/apt" && export APT_CONFIG="$tmp/apt/conf" && apt-get -q update && apt-get -q "$@") >"$tmp/log" 2>&1
        then return 0; fi
    done
    return 1
}

fetch_greatest() {
    for dir in "$out" "${DEPS_FROM:-$out}" /usr/include /usr/local/include; do
        if sha256_is "$dir/greatest.h" $greatest_sha; then
            [ "$dir" = "$out" ] || { cp "$dir/greatest.h" "$tmp/greatest.h" && finish greatest.h "$dir"; }
            return
        fi
    done
    if have curl; then curl -fsSL --connect-timeout 5 -m 30 -o "$tmp/greatest.h" $greatest_url 2>/dev/null || :
    elif have wget; then wget -q -T 5 -t 1 -O "$tmp/greatest.h" $greatest_url 2>/dev/null || :
    fi
    if sha256_is "$tmp/greatest.h" $greatest_sha; then finish greatest.h upstream; return; fi
    apt_private $greatest_suite source --download-only --tar-only $greatest_source/$greatest_suite ||
        fail greatest.h "$greatest_url"
    tar -xzOf "$tmp/apt/$greatest_source"_*.orig.tar.gz --wildcards '*/test/greatest.h' >"$tmp/greatest.h"
    sha256_is "$tmp/greatest.h" $greatest_sha || die "greatest.h from Debian's source of $greatest_source has another sha256"
    finish greatest.h "Debian's source of $greatest_source"
}

fetch_package() { # folder of headers, Debian package, one header that must be there
    for dir in "$out" "${DEPS_FROM:-$out}" /usr/include /usr/local/include; do
        if [ -f "$dir/$1/$3" ]; then
            [ "$dir" = "$out" ] || { cp -RL "$dir/$1" "$tmp/$1" && finish "$1" "$dir"; }
            return
        fi
    done
    suite=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}") || :
    apt_private "${suite:-$greatest_suite}" download "$2" || fail "$1/" "package $2"
    dpkg-deb -x "$tmp/apt/$2"_*.deb "$tmp/root"
    [ -f "$tmp/root/usr/include/$1/$3" ] || die "Debian's package $2 has no $1/$3"
    cp -RL "$tmp/root/usr/include/$1" "$tmp/$1"
    finish "$1" "Debian's package $2"
}

finish() { # name, where it came from
    if mv -T "$tmp/$1" "$out/$1" 2>/dev/null; then say "build/deps/$1 from $2"
    elif [ -e "$out/$1" ]; then : # another run was faster
    else die "cannot write $out/$1"
    fi
}

fail() { # name, where it is to be had
    [ ! -s "$tmp/log" ] || tail -n 5 "$tmp/log" >&2
    die "cannot get $1: no copy on this machine, and neither upstream nor a Debian mirror answers." \
        "Get it yourself ($2) and put it into $out, or name its folder: DEPS_FROM=folder"
}

mkdir -p $out
out=$(cd $out && pwd)
tmp=$(mktemp -d "$out/.tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 2' HUP INT TERM

[ $# -gt 0 ] || set -- greatest simde stb
for name in "$@"; do
    case $name in
    greatest) fetch_greatest ;;
    simde) fetch_package simde libsimde-dev x86/avx2.h ;;
    stb) fetch_package stb libstb-dev stb_ds.h ;;
    *) die "unknown dependency '$name': greatest, simde or stb" ;;
    esac
done
