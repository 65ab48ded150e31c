#!/bin/sh
# Builds build/python/mtan-*.whl in an environment of its own, which is kept, so that the next build compiles only what
# has changed; and the source archive, build/python/mtan-*.tar.gz.
#
#   wheel.sh PYTHON
#
# Exit status: 0; 1: it cannot be built; 77: the build tools are not available.
set -u
cd "$(dirname "$0")/../.." || exit 2
venv=build/python/builder
mkdir -p build/python
"$1" -m venv $venv >build/python/pip.log 2>&1 && $venv/bin/pip install -q scikit-build-core cmake ninja >build/python/pip.log 2>&1 || {
    echo "scikit-build-core, cmake or ninja cannot be had: build/python/pip.log"
    exit 77
}
rm -f build/python/*.whl build/python/*.tar.gz
PATH=$PWD/$venv/bin:$PATH $venv/bin/pip wheel -q --no-build-isolation --no-deps --config-settings="build-dir=$PWD/build/python/{wheel_tag}" -w build/python tools/python || exit 1
(cd tools/python && "../../$venv/bin/python" -c 'from scikit_build_core.build import build_sdist; build_sdist("../../build/python")') \
    >build/python/sdist.log 2>&1 || { cat build/python/sdist.log && exit 1; }
ls build/python/*.whl build/python/*.tar.gz
