#!/bin/sh
# Finds or fetches what the build uses and the repository does not hold, into build/deps. No root needed, nor any package manager.
#
#   tools/deps.sh [greatest] [simde] [stb]
#
#   greatest  build/deps/greatest.h     the test framework (ISC), 1.5.0
#   simde     build/deps/simde/         SIMD intrinsics on every CPU (MIT), headers only
#   stb       build/deps/stb/stb_ds.h   hash maps and growing arrays for the tools (public domain or MIT)
#
# Each is looked for in this order:
#   1. in build/deps
#   2. in the folder DEPS_FROM (for machines without a network)
#   3. in the folders DEPS_SYSTEM, by default those of the system's headers, of Homebrew, of MacPorts and of CPATH
#   4. at upstream, one release, checked by its sha256 (curl or wget)
#   5. in Debian's archive, through the machine's own mirror (apt-get)
#   6. SIMDe: in the source package of pyabpoa on PyPI, checked by its sha256 (pip)
# Where none has it, a stand-in of our own serves: less of greatest and stb_ds, in place of SIMDe the compiler's own vectors. All is
# built and tested with them; `make deps` looks again. Everything is made under a temporary name and renamed when whole, so two
# runs at once do no harm.
set -eu
cd "$(dirname "$0")/.."
out=build/deps
greatest_url=https://github.com/silentbicycle/greatest/raw/v1.5.0/greatest.h
greatest_sha=1292593d95c35eeccc89ffa1c91d6fe53b49f81cbf2c2b7758842b7f3186fcc2
greatest_suite=trixie # no binary package has greatest.h; the source of dunst in this suite carries the very file
greatest_source=dunst
stb_url=https://github.com/nothings/stb/raw/31c1ad37456438565541f4919958214b6e762fb4/stb_ds.h
stb_sha=3ef6d369f0ee324e60326160b7721b83bb52e123d4276322e993676555d0efdd
simde_url=https://github.com/simd-everywhere/simde/archive/refs/tags/v0.8.2.tar.gz
simde_sha=ed2a3268658f2f2a9b5367628a85ccd4cf9516460ed8604eed369653d49b25fb
simde_root=simde-0.8.2/simde # inside of it
pypi_package=pyabpoa==1.5.7.1
pypi_sha=765643c522032cac957c5c8b057e021599ffa01bcace39ba893aa31448e7a428
pypi_root=pyabpoa-1.5.7.1/include/simde/simde

say() { echo "deps: $*"; }
die() { echo "mtan: tools/deps.sh: $*" >&2; exit 2; }
have() { command -v "$1" >/dev/null 2>&1; }

sha256_is() { # file, sum
    [ -f "$1" ] || return 1
    if have sha256sum; then sum=$(sha256sum <"$1")
    elif have shasum; then sum=$(shasum -a 256 <"$1")
    elif have openssl; then sum=$(openssl dgst -sha256 -r <"$1")
    else return 1
    fi
    [ "${sum%% *}" = "$2" ]
}

# The folders that this machine's headers may be in, one per line.
system_folders() {
    # shellcheck disable=SC2086 # one word per folder
    if [ -n "${DEPS_SYSTEM+set}" ]; then printf '%s\n' $DEPS_SYSTEM; return; fi
    printf '%s\n' /usr/include /usr/local/include /opt/homebrew/include /opt/local/include
    if have brew; then echo "$(brew --prefix 2>/dev/null)/include"; fi
    printf '%s\n' "${CPATH-}:${C_INCLUDE_PATH-}:${CONDA_PREFIX:+$CONDA_PREFIX/include}" | tr ':' '\n'
}

# The first folder that has the header, of DEPS_FROM and the system's.
folder_with() { # header, sha256 if it has to have one
    { printf '%s\n' "${DEPS_FROM-}"; system_folders; } | while read -r folder; do
        if [ -n "$folder" ] && [ -f "$folder/$1" ] && { [ -z "${2-}" ] || sha256_is "$folder/$1" "$2"; }
        then printf '%s\n' "$folder"; break; fi
    done
}

download() { # url, sha256, file
    if have curl; then curl -fsSL --connect-timeout 5 -m 60 -o "$3" "$1" 2>/dev/null || :
    elif have wget; then wget -q -T 5 -t 1 -O "$3" "$1" 2>/dev/null || :
    fi
    sha256_is "$3" "$2"
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

debian_headers() { # package, folder of headers in it: leaves it in $tmp
    suite=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}") || :
    apt_private "${suite:-$greatest_suite}" download "$1" && dpkg-deb -x "$tmp/apt/$1"_*.deb "$tmp/root" &&
        [ -d "$tmp/root/usr/include/$2" ] && cp -RL "$tmp/root/usr/include/$2" "$tmp/$2"
}

unpack() { # archive, folder inside of it, name of that folder in $tmp
    mkdir -p "$tmp/unpacked" && gzip -dc "$1" | (cd "$tmp/unpacked" && tar -xf - "$2") && mv "$tmp/unpacked/$2" "$tmp/$3"
}

find_greatest() {
    folder=$(folder_with greatest.h $greatest_sha)
    if [ -n "$folder" ]; then cp "$folder/greatest.h" "$tmp/greatest.h" && finish greatest.h "$folder"
    elif download $greatest_url $greatest_sha "$tmp/greatest.h"; then finish greatest.h upstream
    elif apt_private $greatest_suite source --download-only --tar-only $greatest_source/$greatest_suite &&
        gzip -dc "$tmp/apt/$greatest_source"_*.orig.tar.gz >"$tmp/source.tar" &&
        member=$(tar -tf "$tmp/source.tar" | grep '/test/greatest\.h$') &&
        tar -xOf "$tmp/source.tar" "$member" >"$tmp/greatest.h" && sha256_is "$tmp/greatest.h" $greatest_sha
    then finish greatest.h "Debian's source of $greatest_source"
    else
        echo '#include "../../tests/support/greatest_stand_in.h"' >"$tmp/greatest.h"
        stand_in greatest greatest.h "$greatest_url" "the tests run on tests/support/greatest_stand_in.h"
    fi
}

find_stb() {
    folder=$(folder_with stb/stb_ds.h)
    mkdir "$tmp/stb"
    if [ -n "$folder" ]; then cp "$folder/stb/stb_ds.h" "$tmp/stb" && finish stb "$folder"
    elif download $stb_url $stb_sha "$tmp/stb/stb_ds.h"; then finish stb upstream
    elif rm -rf "$tmp/stb"; debian_headers libstb-dev stb; then finish stb "Debian's package libstb-dev"
    else
        mkdir "$tmp/stb"
        echo '#include "../../../tools/data/stb_ds_stand_in.h"' >"$tmp/stb/stb_ds.h"
        stand_in stb stb "$stb_url" "the tools use tools/data/stb_ds_stand_in.h"
    fi
}

find_simde() {
    folder=$(folder_with simde/x86/avx2.h)
    if [ -n "$folder" ]; then cp -RL "$folder/simde" "$tmp/simde" && finish simde "$folder"
    elif download $simde_url $simde_sha "$tmp/simde.tar.gz" && unpack "$tmp/simde.tar.gz" $simde_root simde
    then finish simde upstream
    elif debian_headers libsimde-dev simde; then finish simde "Debian's package libsimde-dev"
    elif pypi_simde; then finish simde "PyPI's $pypi_package"
    else
        mkdir "$tmp/simde"
        echo '/* See simd/intrinsics.h. */' >"$tmp/simde/none.h"
        stand_in simde simde "$simde_url" "the vectors are the compiler's own (simd/intrinsics.h)"
    fi
}

# pip looks into a source package before it hands it over, which needs its build tools: that is why it comes last.
pypi_simde() {
    if have pip3; then pip=pip3; elif have pip; then pip=pip; else return 1; fi
    echo "$pypi_package --hash=sha256:$pypi_sha" >"$tmp/packages.txt"
    $pip download -q --no-deps --no-binary "${pypi_package%%=*}" --require-hashes -r "$tmp/packages.txt" -d "$tmp/pypi" >"$tmp/log" 2>&1 &&
        for archive in "$tmp"/pypi/*.tar.gz; do sha256_is "$archive" $pypi_sha && unpack "$archive" $pypi_root simde; done
}

# Is there something else than a stand-in?
present() { # name, file in build/deps
    [ -f "$out/$2" ] && [ ! -f "$out/$1.stand-in" ]
}

# Renames $tmp/NAME. Onto a folder that is there it fails: then another run was faster.
move() { # name
    mv -f "$tmp/$1" "$out/" 2>/dev/null || [ -e "$out/$1" ] || die "cannot write $out/$1"
}

finish() { # name, where it came from
    if [ -f "$out/${1%.h}.stand-in" ]; then
        touch Makefile # make compiles all anew: what was compiled with a stand-in does not fit what will be compiled now
        mv "$out/$1" "$tmp/before"
        rm -f "$out/${1%.h}.stand-in"
    fi
    move "$1"
    say "build/deps/$1 from $2"
}

stand_in() { # dependency, name in build/deps, where it is to be had, what serves
    if [ ! -f "$out/$1.stand-in" ]; then
        echo "$3" >"$out/$1.stand-in"
        move "$2"
    fi
    say "no $1 on this machine, at upstream or a mirror: $4; \`make deps\` looks again"
}

mkdir -p $out
out=$(cd $out && pwd)
tmp=$(mktemp -d "$out/.tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 2' HUP INT TERM

[ $# -gt 0 ] || set -- greatest simde stb
for name in "$@"; do
    case $name in
    greatest) present greatest greatest.h || find_greatest ;;
    simde) present simde simde/x86/avx2.h || find_simde ;;
    stb) present stb stb/stb_ds.h || find_stb ;;
    *) die "unknown dependency '$name': greatest, simde or stb" ;;
    esac
done
