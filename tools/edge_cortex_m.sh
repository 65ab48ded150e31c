#!/bin/sh
# Models on Cortex-M boards without an operating system, in qemu-system-arm: platform/cortex-m/main.c with a model exported by
# `mtan export` and golden records, linked with mtan.c, platform/cortex-m and libgcc, nothing else.
#
#   M4F mps2-an386, M7 mps2-an500, M3 (no FPU) mps2-an385      physionet-enc, 1.09 MB of weights
#   M55 mps3-an547 (512 KB of code, 512 KB of RAM)             toy-interp, 455 KB of weights, and enc-small
#
# Needs gcc-arm-none-eabi, libnewlib-arm-none-eabi (string.h, no library) and qemu-system-arm. An image passes when its self-test
# and its distance from the published code do, and when every output has the bits of this machine's build of the same class, fused
# or unfused. Instructions are counted by SysTick under -icount shift=0 (one instruction is one nanosecond), measured against
# a loop of known length. MTAN and BOARD_CASE name programs that are built already. The last line is the sum.
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0 skipped=0
out=build/edge/cortex-m board=platform/cortex-m
mkdir -p $out

finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ]; exit $?; }
skip() { skipped=$((skipped + 1)); printf 'skipped %-22s %s\n' "$1" "$2"; }
fail() { failed=$((failed + 1)); printf 'FAILED  %-22s %s\n' "$1" "$2"; [ -z "${3:-}" ] || tail -n 12 "$3"; }

for tool in arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm gcc:gcc; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || { skip cortex-m "no ${tool%%:*}: apt-get install ${tool#*:}"; finish; }
done
echo '#include <string.h>' | arm-none-eabi-gcc -E - >/dev/null 2>&1 ||
    { skip cortex-m "no string.h: apt-get install libnewlib-arm-none-eabi"; finish; }

[ -n "${MTAN:-}" ] || { MTAN=build/mtan && ${MAKE:-make} -s --no-print-directory mtan >$out/make.log 2>&1; } ||
    { fail cortex-m "build/mtan does not build" $out/make.log; finish; }
[ -n "${BOARD_CASE:-}" ] || { BOARD_CASE=build/release/board_case && ${MAKE:-make} -s --no-print-directory $BOARD_CASE >$out/make.log 2>&1; } ||
    { fail cortex-m "tools/board_case.c does not build" $out/make.log; finish; }

prepare() { # case, most events, most times: model.h and records.h
    here=$out/$1 && mkdir -p "$here" && "$BOARD_CASE" "$1" "$here/model.safetensors" "$here/records.h" &&
        "$MTAN" export "$here/model.safetensors" --c -o "$here/model.h" --events "$2" --times "$3" --quiet
}

on_this_machine() { # case, class: the same program here, build/edge/cortex-m/CASE/host-CLASS.txt; fails: no such class here
    here=$out/$1 flag=
    [ -f "$here/host-$2.txt" ] && return
    [ "$2" = fused ] && case $(uname -m) in x86_64 | i?86) flag=-mfma ;; esac
    # shellcheck disable=SC2086 # no flag is no word
    { [ -f "$out/mtan-$2.o" ] || gcc -std=c99 -O2 $flag -I. -c mtan.c -o "$out/mtan-$2.o"; } &&
        gcc -std=c99 -O1 -I. -I$board -I"$here" $board/main.c $board/host.c "$out/mtan-$2.o" -o "$here/host" &&
        "$here/host" >"$here/host.txt" 2>&1 &&
        grep -q "^fused: $([ "$2" = fused ] && echo 1 || echo 0)$" "$here/host.txt" && mv "$here/host.txt" "$here/host-$2.txt"
}

warn="-std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror"
compile() { # file, object, flags: as a freestanding program may be
    file=$1 object=$2
    shift 2
    # shellcheck disable=SC2086 # several words
    arm-none-eabi-gcc $warn -mthumb -ffreestanding -ffunction-sections -fdata-sections -I. -I$board "$@" -c "$file" -o "$object"
}

build() { # name, case, linker script, flags of the core: build/edge/cortex-m/NAME-CASE/image.elf
    core=$out/$1 image=$out/$1-$2 model=$out/$2 script=$3
    shift 3
    mkdir -p "$core"
    if [ ! -f "$core/mtan.o" ]; then # what does not depend on the model; memory.c must not become calls of itself
        compile $board/startup.c "$core/startup.o" "$@" && compile $board/semihosting.c "$core/semihosting.o" "$@" &&
            compile $board/memory.c "$core/memory.o" "$@" -fno-tree-loop-distribute-patterns &&
            compile mtan.c "$core/mtan.o" "$@" || return 1
    fi
    compile $board/main.c "$image/main.o" "$@" -I"$model" &&
        arm-none-eabi-gcc "$@" -mthumb -nostdlib -Wl,--gc-sections,--fatal-warnings -L$board -T "$board/$script" "$core"/*.o \
            "$image/main.o" -lgcc -o "$image/image.elf"
}

section() { arm-none-eabi-size -A "$1" | awk -v s="$2" '$1 ~ s { n += $2 } END { print n + 0 }'; }
said() { sed -n "s/^$2: //p" "$1"; }

target() { # name, machine, class, case, linker script, flags
    name=$1 machine=$2 class=$3 case=$4 script=$5
    shift 5
    dir=$out/$name-$case
    mkdir -p "$dir"
    build "$name" "$case" "$script" "$@" >"$dir/build.log" 2>&1 || { fail "$name $case" "does not build" "$dir/build.log"; return; }
    timeout 300 qemu-system-arm -M "$machine" -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
        -icount shift=0 -kernel "$dir/image.elf" </dev/null >"$dir/run.txt" 2>&1 ||
        { fail "$name $case" "ended with status $?" "$dir/run.txt"; return; }
    [ "$(said "$dir/run.txt" fused)" = "$([ "$class" = fused ] && echo 1 || echo 0)" ] ||
        { fail "$name $case" "not of the $class class"; return; }
    if ! on_this_machine "$case" "$class" 2>"$dir/host.log"; then
        skip "$name $case" "ran, but this machine has no $class build to compare with"
        return
    fi
    grep '^bits ' "$dir/run.txt" >"$dir/bits.txt"
    grep '^bits ' "$out/$case/host-$class.txt" >"$dir/host-bits.txt"
    { [ -s "$dir/bits.txt" ] && cmp -s "$dir/host-bits.txt" "$dir/bits.txt"; } ||
        { fail "$name $case" "other bits than this machine's $class build: $dir/bits.txt"; return; }
    passed=$((passed + 1))
    printf 'ok      %-22s %7s %9s %9s %9s %6s %11s  %s, %s lines\n' "$name $case" "$(section "$dir/image.elf" '^\\.text')" \
        "$(section "$dir/image.elf" '^\\.rodata')" "$(section "$dir/image.elf" '^\\.(data|bss)')" "$(said "$dir/run.txt" memory)" \
        "$(said "$dir/run.txt" stack)" "$(said "$dir/run.txt" 'instructions per prediction')" "$class" "$(wc -l <"$dir/bits.txt")"
}

rm -f $out/*/host-*.txt $out/*.o $out/*/*.o
for case in physionet-enc:800:130 toy-interp:24:24 enc-small:40:20; do
    rest=${case#*:}
    prepare "${case%%:*}" "${rest%%:*}" "${rest#*:}" >$out/prepare.log 2>&1 || { fail "${case%%:*}" "cannot be exported" $out/prepare.log; finish; }
done
printf '%-30s %7s %9s %9s %9s %6s %11s  %s\n' "bytes, instructions:" code constants RAM predictor stack instr. "bits as this machine's build"
target M4F mps2-an386 fused physionet-enc mps2.ld -O2 -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16
target M7 mps2-an500 fused physionet-enc mps2.ld -O2 -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16
target M3 mps2-an385 unfused physionet-enc mps2.ld -O2 -mcpu=cortex-m3 -mfloat-abi=soft
# Without the vector extension: it flushes subnormal numbers to zero. -Os leaves the larger model some room.
target M55 mps3-an547 fused toy-interp mps3-an547.ld -Os -mcpu=cortex-m55+nomve -mfloat-abi=hard -mfpu=auto
target M55 mps3-an547 fused enc-small mps3-an547.ld -Os -mcpu=cortex-m55+nomve -mfloat-abi=hard -mfpu=auto
finish
