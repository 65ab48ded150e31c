#!/bin/sh
# Plays the engineer who copies the two files into a project of his own: an empty folder, the program of the header's
# manual, one command line without a flag. Any warning is a failure.   vendored.sh CC
set -eu
cd "$(dirname "$0")/.."
dir=build/vendored
rm -rf $dir && mkdir -p $dir
cp mtan.h mtan.c $dir
sed -n '/^ \*     --- program ---$/,/^ \*     --- end ---$/p' mtan.h | sed -e '1d;$d' -e 's/^ \*     //' -e 's/^ \*$//' >$dir/program.c
[ -s $dir/program.c ] || { echo "mtan: mtan.h: no program between '--- program ---' and '--- end ---'"; exit 1; }
cd $dir
"$1" program.c mtan.c 2>warnings || { cat warnings; exit 1; }
[ ! -s warnings ] || { cat warnings; exit 1; }
./a.out
