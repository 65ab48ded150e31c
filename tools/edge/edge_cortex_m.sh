#!/bin/sh
# Runs models on Cortex-M boards without an operating system, in qemu-system-arm: platform/cortex-m with a model
# exported by `mtan export` and libgcc, nothing else.
#
#   tools/edge/edge_cortex_m.sh                            golden records on every core (part of `make edge`)
#   tools/edge/edge_cortex_m.sh MODEL.safetensors [core]   an image of your own, and its self-test:
#                                                          build/edge/cortex-m/own/CORE-4/image.elf
#   tools/edge/edge_cortex_m.sh --build-only ...           only the images; the default without qemu-system-arm
#
#   core  board in qemu                                model
#   M4F   mps2-an386                                   physionet-enc: 1.09 MB of weights; in int8 293 KB
#   M7    mps2-an500                                   physionet-enc
#   M3    mps2-an385, no FPU                           physionet-enc, and in int8
#   M55   mps3-an547, 512 KB of code, 512 KB of RAM    physionet-enc in int8; toy-interp: 455 KB of weights
#
# mTAND-Enc with a class per record runs by mtan_small_logits, POINTS reference points at a time (default 4), in a
# library that has only that (MTAN_SMALL_ONLY); interpolation runs by a predictor. An image passes if it contains no
# training code, if its self-test and its distance from the published code pass, and if every output has the bits of
# this machine's build of the same class, fused or unfused. Code, constants and RAM are bytes of the image, RAM with the
# deepest stack. Instructions are counted by SysTick under -icount shift=0 (one instruction is one nanosecond),
# calibrated by a loop of known length. MTAN and BOARD_CASE name programs that are already built. The last line is the
# sum.
set -u
cd "$(dirname "$0")/../.." || exit 2
passed=0 failed=0 skipped=0
out=build/edge/cortex-m board=platform/cortex-m
points=${POINTS:-4}
build_only=
[ "${1:-}" != --build-only ] || { build_only=yes && shift; }
mkdir -p $out

finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ]; exit $?; }
skip() { skipped=$((skipped + 1)); printf 'skipped %-22s %s\n' "$1" "$2"; }
fail() { failed=$((failed + 1)); printf 'FAILED  %-22s %s\n' "$1" "$2"; [ -z "${3:-}" ] || tail -n 12 "$3"; }

# ---- cores ----

# Without the M55's vector extension, which flushes subnormal numbers to zero. -Os leaves some room for the larger
# model.
core_is() { # core: machine, class, script, flags
    case $1 in
    M4F) machine=mps2-an386 class=fused script=mps2.ld flags="-O2 -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16" ;;
    M7) machine=mps2-an500 class=fused script=mps2.ld flags="-O2 -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16" ;;
    M3) machine=mps2-an385 class=unfused script=mps2.ld flags="-O2 -mcpu=cortex-m3 -mfloat-abi=soft" ;;
    M55) machine=mps3-an547 class=fused script=mps3-an547.ld flags="-Os -mcpu=cortex-m55+nomve -mfloat-abi=hard -mfpu=auto" ;;
    *) echo "mtan: $0: no core $1; there are: M4F M7 M3 M55" && exit 2 ;;
    esac
    flags="-std=c99 -mthumb -ffreestanding -ffunction-sections -fdata-sections $flags"
}

# ---- one model: its folder has model.h, and records.h if there are records to compare with ----

said() { sed -n "s/^$2: //p" "$1"; }
is_fused() { [ "$1" = fused ] && echo 1 || echo 0; }

# Runs the same program on this machine: MODEL/host-CLASS.txt. Status 2: it does not run; 3: this machine does not have
# this class.
host() { # model, class, settings of main.c
    model=$1 kind=$2 flag=
    shift 2
    [ "$kind" = fused ] && case $(uname -m) in x86_64 | i?86) flag=-mfma ;; esac
    # shellcheck disable=SC2086 # no flag is no word
    { [ -f "$out/mtan-$kind.o" ] || gcc -std=c99 -O2 $flag -I. -c mtan.c -o "$out/mtan-$kind.o"; } &&
        gcc -std=c99 -O1 -I. -I$board -I"$model" "$@" $board/main.c $board/host.c "$out/mtan-$kind.o" -o "$model/host" &&
        "$model/host" >"$model/host.txt" 2>&1 || return 2
    [ "$(said "$model/host.txt" fused)" = "$(is_fused "$kind")" ] || return 3
    mv "$model/host.txt" "$model/host-$kind.txt"
}

# The settings of main.c. mtan_small_size is the same on every CPU, so this machine computes the memory needed.
settings() { # model, most records
    records=$([ ! -f "$1/records.h" ] || echo "-DRECORDS=\"records.h\" -DMOST_RECORDS=$2")
    ! grep -q '_is_int8 1$' "$1/model.h" || records="$records -DLIMIT=1e-4f" # 4e-5 was measured
    if grep -q '_is_small 1$' "$1/model.h"; then
        # shellcheck disable=SC2086 # several words, or none
        host "$1" unfused -DPOINTS="$points" -DMEMORY=4194304 $records
        echo "-DPOINTS=$points -DMEMORY=$(said "$1/host-unfused.txt" memory) $records"
    else
        echo "$records"
    fi
}

warn="-pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror"
compile() { # file, object, flags
    file=$1 object=$2
    shift 2
    # shellcheck disable=SC2086 # several words
    arm-none-eabi-gcc $warn $flags -I. -I$board "$@" -c "$board/$file" -o "$object"
}

build() { # model, core, folder of the image, settings of main.c: image.elf
    model=$1 objects=$out/$2 image=$3
    shift 3
    mkdir -p "$objects"
    if [ ! -f "$objects/small_only.o" ]; then # objects that do not depend on the model; memory.c must not be compiled into calls of itself
        compile startup.c "$objects/startup.o" && compile semihosting.c "$objects/semihosting.o" &&
            compile memory.c "$objects/memory.o" -fno-tree-loop-distribute-patterns &&
            compile predict_only.c "$objects/predict_only.o" &&
            compile predict_only.c "$objects/small_only.o" -DMTAN_SMALL_ONLY || return 1
    fi
    library=$(grep -q '_is_small 1$' "$model/model.h" && echo small_only || echo predict_only)
    # shellcheck disable=SC2086 # several words
    compile main.c "$image/main.o" -I"$model" "$@" &&
        arm-none-eabi-gcc $flags -nostdlib -Wl,--gc-sections,--fatal-warnings -L$board -T "$board/$script" "$objects/startup.o" \
            "$objects/semihosting.o" "$objects/memory.o" "$objects/$library.o" "$image/main.o" -lgcc -o "$image/image.elf"
}

training='_backward$|^backward_of$|^adam|^mtan_trainer|^mtan_backward|^(cross_entropy|loglik|bound|kl|ratio)_forward$'
trains() { arm-none-eabi-nm "$1" | awk '{ print $NF }' | grep -E "$training"; }
section() { arm-none-eabi-size -A "$1" | awk -v s="$2" '$1 ~ s { n += $2 } END { print n + 0 }'; }

# A row for an image that is built but not run, with the reason.
built() { # name, image, why, status
    printf '%-7s %-22s bytes: %5s code, %7s constants, %6s RAM without stack; %s: %s\n' "$4" "$1" "$(section "$2" '^\\.text')" \
        "$(section "$2" '^\\.rodata')" "$(section "$2" '^\\.(data|bss)')" "$2" "$3"
}

# Builds and runs one image, and prints its row.
target() { # name of the row, core, model, most records
    core_is "$2"
    name=$1 core=$2 model=$3 dir=$3/$2-$points
    mkdir -p "$dir"
    # shellcheck disable=SC2046 # several words
    set -- $(settings "$model" "${4:-100}" 2>"$dir/host.log")
    build "$model" "$core" "$dir" "$@" >"$dir/build.log" 2>&1 || { fail "$name" "does not build" "$dir/build.log"; return; }
    ! trains "$dir/image.elf" >"$dir/training.log" || { fail "$name" "holds training code" "$dir/training.log"; return; }
    if [ -n "$build_only" ]; then passed=$((passed + 1)) && built "$name" "$dir/image.elf" "built, not run" ok && return; fi
    if [ -z "$has_qemu" ]; then
        skipped=$((skipped + 1)) && built "$name" "$dir/image.elf" "not run, no qemu-system-arm: apt-get install qemu-system-arm" built
        return
    fi
    timeout 300 qemu-system-arm -M "$machine" -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
        -icount shift=0 -kernel "$dir/image.elf" </dev/null >"$dir/run.txt" 2>&1 ||
        { fail "$name" "ended with status $?" "$dir/run.txt"; return; }
    [ "$(said "$dir/run.txt" fused)" = "$(is_fused "$class")" ] || { fail "$name" "not of the $class class"; return; }
    host "$model" "$class" "$@" 2>"$dir/host.log"
    case $? in
    0) ;;
    3) skip "$name" "ran, but this machine has no $class build to compare with"; return ;;
    *) fail "$name" "does not run on this machine" "$dir/host.log"; return ;;
    esac
    grep '^bits ' "$dir/run.txt" >"$dir/bits.txt"
    grep '^bits ' "$model/host-$class.txt" >"$dir/host-bits.txt"
    { [ -s "$dir/bits.txt" ] && cmp -s "$dir/host-bits.txt" "$dir/bits.txt"; } ||
        { fail "$name" "other bits than this machine's $class build: $dir/bits.txt"; return; }
    passed=$((passed + 1))
    stack=$(said "$dir/run.txt" stack)
    ram=$(($(section "$dir/image.elf" '^\\.(data|bss)') + stack)) instructions=$(said "$dir/run.txt" 'instructions per prediction')
    printf 'ok      %-22s bytes: %5s code, %7s constants, %6s RAM (%4s stack); %s%s lines of bits, %s\n' "$name" \
        "$(section "$dir/image.elf" '^\\.text')" "$(section "$dir/image.elf" '^\\.rodata')" $ram "$stack" \
        "${instructions:+$instructions instructions; }" "$(wc -l <"$dir/bits.txt")" "$class"
}

export_model() { # model file, folder, most events, most times: model.h
    "$MTAN" export "$1" --c -o "$2/model.h" --events "$3" --times "$4" --quiet
}

golden_case() { # case, most events, most times: model.h and records.h
    model=$out/$1 name=${1%-int8}
    mkdir -p "$model" && "$BOARD_CASE" "$name" "$model/model.safetensors" "$model/records.h" || return 1
    [ "$name" = "$1" ] || { "$MTAN" quantize "$model/model.safetensors" "$model/int8.safetensors" && mv "$model/int8.safetensors" "$model/model.safetensors"; } || return 1
    export_model "$model/model.safetensors" "$model" "$2" "$3"
}

# ---- all models ----

for tool in arm-none-eabi-gcc:gcc-arm-none-eabi gcc:gcc; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || { skip cortex-m "no ${tool%%:*}: apt-get install ${tool#*:}"; finish; }
done
echo '#include <string.h>' | arm-none-eabi-gcc -E - >/dev/null 2>&1 ||
    { skip cortex-m "no string.h: apt-get install libnewlib-arm-none-eabi"; finish; }
has_qemu=$(command -v qemu-system-arm)
[ -n "${MTAN:-}" ] || { MTAN=build/mtan && ${MAKE:-make} -s --no-print-directory mtan >$out/make.log 2>&1; } ||
    { fail cortex-m "build/mtan does not build" $out/make.log; finish; }
rm -f $out/*.o $out/*/*.o $out/*/host-*.txt

if [ $# -gt 0 ]; then
    mkdir -p $out/own && export_model "$1" $out/own "${EVENTS:-1500}" "${TIMES:-200}" || exit 2
    target "${2:-M4F} own" "${2:-M4F}" $out/own
    finish
fi
[ -n "${BOARD_CASE:-}" ] || { BOARD_CASE=build/release/board_case && ${MAKE:-make} -s --no-print-directory $BOARD_CASE >$out/make.log 2>&1; } ||
    { fail cortex-m "tools/edge/board_case.c does not build" $out/make.log; finish; }
for case in physionet-enc:800:130 physionet-enc-int8:800:130 toy-interp:24:24; do
    rest=${case#*:}
    golden_case "${case%%:*}" "${rest%%:*}" "${rest#*:}" >$out/prepare.log 2>&1 || { fail "${case%%:*}" "cannot be exported" $out/prepare.log; finish; }
done
target "M4F physionet-enc" M4F $out/physionet-enc
target "M7 physionet-enc" M7 $out/physionet-enc
target "M3 physionet-enc" M3 $out/physionet-enc 2 # emulated arithmetic on an emulated CPU: half a minute for two records
target "M4F physionet-enc int8" M4F $out/physionet-enc-int8
target "M3 physionet-enc int8" M3 $out/physionet-enc-int8 2
target "M55 physionet-enc int8" M55 $out/physionet-enc-int8
target "M55 toy-interp" M55 $out/toy-interp
points=1
target "M4F physionet-enc, 1" M4F $out/physionet-enc 2
finish
