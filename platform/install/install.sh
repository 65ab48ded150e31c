#!/bin/sh
# Installs what make has built, or removes it: `make install` and `make uninstall` call it, with the folders in the environment.
#   install.sh install | uninstall
set -eu
cd "$(dirname "$0")/../.."
made=build/install # what depends on the folders is made here
here=platform/install
DESTDIR=${DESTDIR-} DATADIR=$PREFIX/share

# Every file: mode|source|where it goes; a link: link|to what|where it goes.
files() {
    cat <<EOT
755|build/mtan|$BINDIR/mtan
644|mtan.h|$INCLUDEDIR/mtan.h
644|$made/mtan_simd.h|$INCLUDEDIR/mtan_simd.h
644|build/libmtan.a|$LIBDIR/libmtan.a
755|build/$SHARED|$LIBDIR/$SHARED
link|$SHARED|$LIBDIR/$SONAME
link|$SONAME|$LIBDIR/$LINKNAME
644|$made/mtan.pc|$LIBDIR/pkgconfig/mtan.pc
644|$made/mtanConfig.cmake|$LIBDIR/cmake/mtan/mtanConfig.cmake
644|$made/mtanConfigVersion.cmake|$LIBDIR/cmake/mtan/mtanConfigVersion.cmake
644|$made/mtan.1|$MANDIR/man1/mtan.1
644|$made/mtan.bash|$DATADIR/bash-completion/completions/mtan
644|$made/mtan.zsh|$DATADIR/zsh/site-functions/_mtan
644|$made/mtan.fish|$DATADIR/fish/vendor_completions.d/mtan.fish
EOT
}

# pkg-config can move a prefix: folders below it are said by it.
by_prefix() { # folder
    case $1 in "$PREFIX"/*) printf '%s\n' "\${prefix}/${1#"$PREFIX"/}" ;; *) printf '%s\n' "$1" ;; esac
}

fill() { # template
    set -- "$1" "$(by_prefix "$INCLUDEDIR")" "$(by_prefix "$LIBDIR")"
    sed -e "s|@PC_INCLUDEDIR@|$2|;s|@PC_LIBDIR@|$3|;s|@PREFIX@|$PREFIX|;s|@VERSION@|$VERSION|;s|@SHARED@|$SHARED|" \
        -e "s|@SONAME@|$SONAME|;s|@LIBDIR@|$LIBDIR|;s|@INCLUDEDIR@|$INCLUDEDIR|" "$1"
}

make_files() {
    rm -rf $made && mkdir -p $made
    for name in mtan.pc mtanConfig.cmake mtanConfigVersion.cmake; do fill $here/$name.in >$made/$name; done
    sed 's|"\.\./mtan\.h"|"mtan.h"|' simd/mtan_simd.h >$made/mtan_simd.h
    build/mtan man >$made/mtan.1
    for shell in bash zsh fish; do build/mtan completion $shell >$made/mtan.$shell; done
}

install_files() {
    files | while IFS='|' read -r mode from to; do
        mkdir -p "$DESTDIR${to%/*}"
        case $mode in
        link) ln -sf "$from" "$DESTDIR$to" ;;
        *) install -m "$mode" "$from" "$DESTDIR$to" ;;
        esac || { echo "mtan: cannot write $DESTDIR$to" >&2; exit 2; }
        echo "$DESTDIR$to"
    done
}

# macOS keeps the place of a library in it.
name_place() {
    case $SHARED in *.dylib) install_name_tool -id "$LIBDIR/$SONAME" "$DESTDIR$LIBDIR/$SHARED" ;; esac
}

case ${1-} in
install) make_files && install_files && name_place ;;
uninstall)
    files | while IFS='|' read -r mode from to; do rm -f "$DESTDIR$to"; done
    rmdir "$DESTDIR$LIBDIR/cmake/mtan" 2>/dev/null || :
    ;;
*) echo "mtan: install.sh install | uninstall" >&2; exit 2 ;;
esac
