#!/bin/sh
# Tests copying the files into another project: an empty folder, the program of the header's manual, a model file next
# to it, one command line. First the two files without any flag; then each vector backend for this kind of machine, as
# described in the README, with SIMDe and without it. Any warning is a failure; a backend that this CPU cannot run is
# only compiled, and reported as such.
#   vendored.sh CC [BACKEND:FLAGS:FLAG_OF_THE_CPU...]
set -eu
cd "$(dirname "$0")/../.."
root=$PWD dir=build/vendored cc=$1
shift
rm -rf $dir && mkdir -p $dir/simd
cp mtan.h mtan.c $dir
cp tools/demo/patients.safetensors $dir/model.safetensors
sed -n '/^ \*     --- program ---$/,/^ \*     --- end ---$/p' mtan.h | sed -e '1d;$d' -e 's/^ \*     //' -e 's/^ \*$//' >$dir/program.c
[ -s $dir/program.c ] || { echo "mtan: mtan.h: no program between '--- program ---' and '--- end ---'"; exit 1; }
cd $dir

compile() { # flags and files
    "$cc" "$@" 2>warnings || { cat warnings; exit 1; }
    [ ! -s warnings ] || { cat warnings; exit 1; }
}

compile program.c mtan.c
./a.out

# The example with several threads, which needs the pool in addition to the two files.
mkdir -p tools/demo platform
cp "$root"/tools/demo/parallel.c tools/demo && cp "$root"/platform/pool.[ch] platform
compile -O2 tools/demo/parallel.c mtan.c platform/pool.c -pthread -o parallel
./parallel model.safetensors

cp "$root"/simd/* simd
for backend in "$@"; do
    name=${backend%%:*} rest=${backend#*:}
    flags=${rest%%:*} cpu=${rest#*:}
    sed -e "s/#include \"mtan.h\"/#include \"simd\/mtan_simd.h\"/" \
        -e "s/mtan_predictor_size(/(model.backend = \&mtan_backend_$name, 0) || &/" program.c >program_$name.c
    # shellcheck disable=SC2086 # flags are several words
    compile -O2 $flags -isystem "$root/build/deps" program_$name.c mtan.c simd/mtan_$name.c -o $name
    # shellcheck disable=SC2086
    compile -O2 $flags -DMTAN_NO_SIMDE program_$name.c mtan.c simd/mtan_$name.c -o $name-own
    if grep -q "^flags.* $cpu\( \|\$\)" /proc/cpuinfo 2>/dev/null; then
        ./$name && ./$name >with && ./$name-own >without && cmp with without
    else echo "$name: compiled; this CPU has no $cpu"; fi
done
