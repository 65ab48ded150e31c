#!/bin/sh
# Exports models as C headers and compiles them: C99 with gcc and clang, C++11, the double build, without a hosted
# library, all without a warning; then tools/check/export_check.c compares the compiled model with the model file. MTAN,
# BOARD_CASE and SHARED name programs that are built already (build/mtan, build/release/board_case,
# build/release/shared.a). The last line is the sum.
set -u
cd "$(dirname "$0")/../.." || exit 2
passed=0 failed=0 skipped=0
out=build/edge/export
mkdir -p $out
warn="-pedantic -Wall -Wextra -Wshadow -Wconversion -Werror"

if [ -z "${MTAN:-}" ]; then
    MTAN=build/mtan BOARD_CASE=build/release/board_case SHARED=build/release/shared.a
    ${MAKE:-make} -s --no-print-directory mtan $BOARD_CASE >$out/make.log 2>&1 || { tail -n 12 $out/make.log; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
fi

try() { # what, compiler, arguments
    what=$1
    shift
    if ! command -v "$1" >/dev/null 2>&1; then
        skipped=$((skipped + 1)) && printf 'skipped %-32s no %s\n' "$what" "$1"
    elif "$@" >$out/log 2>&1; then
        passed=$((passed + 1)) && printf 'ok      %s\n' "$what"
    else
        failed=$((failed + 1)) && printf 'FAILED  %s\n' "$what" && tail -n 12 $out/log | cut -c1-300
    fi
}

zlib=$(printf '#include <zlib.h>\nint main(void) { return !zlibVersion(); }\n' | ${CC:-gcc} -x c - -lz -o /dev/null 2>/dev/null && echo -lz)
for case in enc-small toy-interp enc-small-int8; do
    dir=$out/$case && mkdir -p $dir
    small=$([ "$case" = "${case%-int8}" ] || echo "&& '$MTAN' quantize $dir/model.safetensors $dir/int8.safetensors && mv $dir/int8.safetensors $dir/model.safetensors")
    try "$case: export" sh -c "'$BOARD_CASE' ${case%-int8} $dir/model.safetensors $dir/records.h $small && '$MTAN' export $dir/model.safetensors --c -o $dir/model.h --events 40 --times 24 --quiet"
    printf '#include "model.h"\nint main(void) {\n    mtan_model m;\n    return model_open(&m) ? 1 : 0;\n}\n' >$dir/use.c
    # shellcheck disable=SC2086 # several words
    {
        try "$case: C99, gcc" gcc -std=c99 $warn -I. -I$dir -c $dir/use.c -o $dir/use.o
        try "$case: C99, clang" clang -std=c99 $warn -I. -I$dir -c $dir/use.c -o $dir/use.o
        try "$case: C++11, g++" g++ -std=c++11 $warn -I. -I$dir -x c++ -c $dir/use.c -o $dir/use.o
        try "$case: double" gcc -std=c99 $warn -DMTAN_DOUBLE -I. -I$dir -c $dir/use.c -o $dir/use.o
        try "$case: freestanding" gcc -std=c99 $warn -ffreestanding -I. -I$dir -c $dir/use.c -o $dir/use.o
        try "$case: the model is the file's" sh -c "${CC:-gcc} -std=c99 $warn -O1 -I. -I$dir -isystem build/deps tools/check/export_check.c $SHARED $zlib -lm -pthread -o $dir/check && $dir/check $dir/model.safetensors"
    }
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
