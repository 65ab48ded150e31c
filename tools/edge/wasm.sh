#!/bin/sh
# mtan as WebAssembly, under build/wasm: modules, a page that runs them, and the tests of both.
#
#   mtan.wasm, mtan-plain.wasm   the library with and without simd128; tools/web/mtan.js calls them   emscripten
#   index.html                   one file to open from disk: a model to play with, and your own files   node, build/mtan to train it
#   tests                        golden/ in node, the wrapper against golden/ and the command, the    node,
#                                page in a browser                                                    chromium-headless-shell
#
# Parts whose tools are missing are reported and skipped. The last line is the sum: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/../.." || exit 2
out=build/wasm passed=0 failed=0 skipped=0
export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}"
mkdir -p $out

verdict() { # name, status, log
    if [ "$2" = 0 ]; then passed=$((passed + 1)) word=ok; else failed=$((failed + 1)) word=FAILED; fi
    printf '%-7s %-42s %s\n' $word "$1" "$(grep '^Pass: ' "$3" | tail -n 1)"
    [ "$2" = 0 ] || tail -n 20 "$3"
}

skip() { skipped=$((skipped + 1)) && printf 'skipped %-42s %s\n' "$1" "$2"; }

missing() { for tool in "$@"; do command -v "$tool" >/dev/null 2>&1 || { echo "no $tool"; return; }; done; }

finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ] && exit 0; exit 1; }

newer() { [ -f "$1" ] && [ -z "$(find "$@" -newer "$1" 2>/dev/null)" ]; } # file, its sources: is it up to date?

# ---- modules ----

warnings="-pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror"
flags="-O2 -std=gnu99 -ffp-contract=off -I. -isystem build/deps"

shared="tools/mtan/flat/flat_core.c tools/mtan/flat/flat_stream.c tools/mtan/run/reference.c" # as in the Python package

module() { # file, flags and sources
    file=$1 && shift
    newer "$file" mtan.c mtan.h simd tools/web/shim.c tools/web/records.[ch] tools/mtan/flat tools/mtan/model/reference.[ch] tools/edge/wasm.sh && return 0
    # shellcheck disable=SC2086 # flags are several words
    emcc $flags $warnings -s STANDALONE_WASM=1 --no-entry -s ALLOW_MEMORY_GROWTH=1 -s INITIAL_MEMORY=256KB -s TOTAL_STACK=128KB \
        -Wl,--stack-first "$@" tools/web/shim.c tools/web/records.c $shared mtan.c -o "$file.new.wasm" && mv "$file.new.wasm" "$file"
}

modules() {
    { [ -f build/deps/simde/wasm/simd128.h ] || tools/deps.sh simde; } && { [ -f build/deps/greatest.h ] || tools/deps.sh greatest; } &&
        module $out/mtan-plain.wasm && module $out/mtan.wasm -msimd128 -DMTAN_WITH_WASM simd/mtan_wasm.c && ls -l $out/*.wasm
}

golden_suite() {
    # shellcheck disable=SC2086
    emcc $flags -s SINGLE_FILE=1 -s ALLOW_MEMORY_GROWTH=1 -s TOTAL_STACK=4MB -s NODERAWFS=1 -Itests/support -DMTAN_ONE_SUITE=golden_suite \
        -DMTAN_GOLDEN_DIR='"golden"' tests/main.c tests/library/test_golden.c tests/support/ladder.c tests/support/check.c mtan.c -o $out/golden.js &&
        node $out/golden.js -v
}

# ---- models: the page's, and several others to compare with the command ----

# Several samples per bound, and noise of twice the data's, keep the band from being too narrow.
page_model() {
    newer $out/model.safetensors tools/web/series.js tools/edge/wasm.sh && return 0
    node tools/web/series.js 5000 >$out/events.csv && rm -rf $out/run &&
        build/mtan train own --model interp --data $out/events.csv --out $out/run --origin zero --time-scale 24 --quiet \
            --embed 64 --enc-heads 2 --ref-points 32 --enc-hidden 32 --dec-hidden 32 --latent 8 --mlp-hidden 32 \
            --bound faithful --samples 3 --noise-std 0.1 --kl-anneal 0 --kl-weight 1 --variance fixed --predict-samples 8 \
            --epochs 64 --batch 64 --lr 0.005 --schedule constant --warmup 0 &&
        mv $out/run/best.safetensors $out/model.safetensors
}

# A class per record, and a class per time: is it past noon?
classifiers() {
    newer $out/per-time.safetensors tools/demo/example.sh tools/edge/wasm.sh && return 0
    sizes="--epochs 3 --quiet --embed 32 --ref-points 16 --enc-hidden 32"
    tools/demo/example.sh $out/patients && rm -rf $out/run &&
        awk -F, 'NR == 1 { print "record,time,label"; next } !seen[$1, $2]++ { print $1 "," $2 "," ($2 < 12 ? "am" : "pm") }' \
            $out/patients/events.csv >$out/patients/hours.csv || return 1
    # shellcheck disable=SC2086 # sizes are several words
    build/mtan train own --model enc --data $out/patients/events.csv --labels $out/patients/labels.csv --out $out/run $sizes &&
        mv $out/run/best.safetensors $out/per-record.safetensors && rm -rf $out/run &&
        build/mtan train own --model per-time --data $out/patients/events.csv --labels $out/patients/hours.csv --out $out/run $sizes &&
        mv $out/run/best.safetensors $out/per-time.safetensors
}

# A model of a number: how often a record was observed, with an interval.
number() {
    newer $out/number.safetensors tools/demo/example.sh tools/edge/wasm.sh && return 0
    awk -F, 'NR > 1 && !n[$1]++ { name[++names] = $1 } END { print "record,label"; for (i = 1; i <= names; i++) print name[i] "," n[name[i]] }' \
        $out/patients/events.csv >$out/patients/counts.csv && rm -rf $out/run &&
        build/mtan train own --model enc --data $out/patients/events.csv --labels $out/patients/counts.csv --task number --interval 0.8 \
            --out $out/run --epochs 3 --quiet --embed 32 --ref-points 16 --enc-hidden 32 &&
        mv $out/run/best.safetensors $out/number.safetensors
}

# Dates as times; a model that both classifies and interpolates, and its int8 version.
dated() {
    newer $out/dated-int8.safetensors tools/demo/example.sh tools/edge/wasm.sh && return 0
    awk -F, -v OFS=, 'NR == 1 { print; next } $1 != record { record = $1; day = 1 + day % 28 } {
        m = int(59 * $2); $2 = sprintf("2024-02-%02dT%02d:%02d:%02d+01:00", day, m / 60, m % 60, NR % 60); print }' \
        $out/patients/events.csv >$out/patients/dated.csv && rm -rf $out/run &&
        build/mtan train own --model full --data $out/patients/dated.csv --labels $out/patients/labels.csv --out $out/run --epochs 3 \
            --quiet --embed 32 --ref-points 16 --enc-hidden 32 --dec-hidden 32 --latent 8 &&
        mv $out/run/best.safetensors $out/dated.safetensors &&
        build/mtan quantize $out/dated.safetensors $out/dated-int8.safetensors
}

# More channels than the page shows at first, and more than two classes.
wide() {
    newer $out/wide.safetensors tools/demo/example.sh tools/edge/wasm.sh && return 0
    awk -F, -v OFS=, 'NR > 1 { $3 = $3 " " NR % 4 } { print }' $out/patients/events.csv >$out/patients/wide.csv &&
        awk -F, -v OFS=, 'BEGIN { split("north east south west", name, " ") } NR > 1 { $2 = name[1 + NR % 4] } { print }' \
            $out/patients/labels.csv >$out/patients/wide-labels.csv && rm -rf $out/run &&
        build/mtan train own --model enc --data $out/patients/wide.csv --labels $out/patients/wide-labels.csv --out $out/run --epochs 3 \
            --quiet --embed 32 --ref-points 16 --enc-hidden 32 &&
        mv $out/run/best.safetensors $out/wide.safetensors
}

# The page's example, for readers without data of their own.
example() {
    cp tools/demo/patients.safetensors $out/example.safetensors && head -n 400 $out/patients/events.csv >$out/example.csv
}

# The command's output for these models, by the kernels whose bits the modules share.
command_says() {
    node tools/web/series.js 12 >$out/few.csv &&
        build/mtan interpolate $out/model.safetensors --data $out/few.csv --at 0:24:1.5 --backend scalar >$out/interpolated.csv &&
        build/mtan predict $out/per-record.safetensors --data $out/patients/events.csv --backend scalar >$out/per-record.csv &&
        build/mtan quantize $out/per-record.safetensors $out/int8.safetensors &&
        build/mtan predict $out/int8.safetensors --data $out/patients/events.csv --backend scalar >$out/int8.csv &&
        build/mtan predict $out/number.safetensors --data $out/patients/events.csv --backend scalar >$out/number.csv &&
        build/mtan predict $out/per-time.safetensors --data $out/patients/events.csv --backend scalar >$out/per-time.csv || return 1
    for model in dated dated-int8; do
        build/mtan predict $out/$model.safetensors --data $out/patients/dated.csv --backend scalar >$out/$model.csv &&
            head -n 600 $out/patients/dated.csv >$out/patients/few-dated.csv &&
            build/mtan interpolate $out/$model.safetensors --data $out/patients/few-dated.csv --at 0:24:3 --backend scalar \
                >$out/$model-curves.csv || return 1
    done
}

# ---- all parts ----

reason=$(missing emcc node)
if [ -n "$reason" ]; then
    skip "wasm" "$reason: emscripten and nodejs have it"
    finish
fi
modules >$out/modules.log 2>&1
verdict "modules, simd128 and plain" $? $out/modules.log
[ $failed = 0 ] || finish
golden_suite >$out/golden.log 2>&1
verdict "golden/ in node" $? $out/golden.log
{ page_model && classifiers && number && dated && wide && example && command_says; } >$out/models.log 2>&1
verdict "models, and what the command says of them" $? $out/models.log
[ $failed = 0 ] || finish
node tools/web/test.js $out >$out/wrapper.log 2>&1
verdict "tools/web/mtan.js in node" $? $out/wrapper.log
node tools/web/page.js $out >$out/page.log 2>&1
verdict "the page, one file" $? $out/page.log
reason=$(missing chromium-headless-shell)
if [ -n "$reason" ]; then
    skip "the page in a browser" "$reason: chromium-headless-shell has it"
else
    node tools/web/browser.js $out >$out/browser.log 2>&1
    verdict "the page in a browser" $? $out/browser.log
fi
finish
