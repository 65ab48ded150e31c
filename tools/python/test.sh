#!/bin/sh
# Tests the wheel in an empty virtual environment: installs it with only its requirements, then runs its tests, with
# today's numpy and with 1.26.
#
#   test.sh PYTHON
#
# PYTHON_SHORT leaves out 1.26, and large or rarely installed packages: torch, onnx, the Hub's library, a kernel for
# notebooks. MTAN_COMMAND is the `mtan` command to compare with, MTAN_REFERENCE a checkout of the published code,
# MTAN_PHYSIONET a folder with the challenge's set-a.tar.gz. Tests without their requirements are reported and skipped.
# The last line is the sum: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/../.." || exit 2
python=$1 venv=build/python/venv passed=0 failed=0 skipped=0

finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ] && exit 0; exit 1; }
skip() { skipped=$((skipped + 1)) && echo "skipped $1: $2"; }
verdict() { # name, status
    if [ "$2" = 0 ]; then passed=$((passed + 1)) && echo "ok      $1"; else failed=$((failed + 1)) && echo "FAILED  $1"; fi
}

count() { # how many tests in a log have this result, from pytest's last line: passed
    sed -nE "s/^.*[^0-9]*\b([0-9]+) $2.*$/\1/p" "$1" | tail -n 1 | grep . || echo 0
}

suite() { # name
    log=build/python/test.log
    $venv/bin/python -m pytest -q -p no:cacheprovider tools/python/tests >$log 2>&1
    status=$?
    grep -E '^(FAILED|ERROR|E  )' $log
    echo "$1: $(tail -n 1 $log)"
    passed=$((passed + $(count $log passed))) failed=$((failed + $(count $log failed))) skipped=$((skipped + $(count $log skipped)))
    # It may have ended before any test.
    [ $status = 0 ] || [ "$(count $log failed)" != 0 ] || failed=$((failed + 1))
}

tools/python/wheel.sh "$python"
case $? in
0) verdict "the wheel" 0 ;;
77) skip "the package" "it cannot be built here" && finish ;;
*) verdict "the wheel" 1 && finish ;;
esac
wheel=$(ls build/python/*.whl)
rm -rf $venv && "$python" -m venv $venv >/dev/null 2>&1 || { skip "the package" "no venv of $python"; finish; }
$venv/bin/pip install -q "$wheel" >build/python/pip.log 2>&1 || { skip "the package" "numpy and narwhals cannot be had"; finish; }
$venv/bin/python tools/python/tests/bare.py
verdict "numpy and narwhals alone" $?
$venv/bin/pip install -q "$wheel[test]" >build/python/pip.log 2>&1 || { skip "tests" "pandas, polars, pyarrow, scikit-learn or pytest cannot be had"; finish; }
for group in onnx hub notebook torch; do
    if [ -n "${PYTHON_SHORT-}" ]; then skip "tests with $group" "PYTHON_SHORT"
    else $venv/bin/pip install -q "$wheel[test-$group]" >build/python/pip.log 2>&1 || skip "tests with $group" "it cannot be had"; fi
done
[ -n "${MTAN_REFERENCE-}" ] || skip "the published code" "no checkout: MTAN_REFERENCE"
suite "numpy $($venv/bin/python -c 'import numpy; print(numpy.__version__)')"
[ -z "${PYTHON_SHORT-}" ] || finish
# A wheel built from the source archive has the same files, although it is built away from the project.
away=$(mktemp -d)
names() { "$python" -m zipfile -l "$1" | sed 's/ .*//' | sort; }
PATH=$PWD/build/python/builder/bin:$PATH build/python/builder/bin/pip wheel -q --no-build-isolation --no-deps -w "$away" build/python/*.tar.gz &&
    [ "$(names "$wheel")" = "$(names "$away"/*.whl)" ]
verdict "the source archive" $?
rm -rf "$away"
# Packages of that time: today's pyarrow needs numpy 2, and does not tell pip so.
if $venv/bin/pip install -q "$wheel[test]" 'numpy==1.26.*' 'pandas<3' 'pyarrow<20' >build/python/pip.log 2>&1; then suite "numpy 1.26"
else skip "numpy 1.26" "not for this Python"; fi
finish
