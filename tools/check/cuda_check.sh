#!/bin/sh
# Compiles platform/cuda/kernels.cu for the two Titan X, which nvcc 13 no longer supports, and prints for each kernel
# the resources per multiprocessor: registers, spills, shared memory, resident blocks, fraction of the maximum number of
# threads (theoretical occupancy).
#
#   tools/check/cuda_check.sh PROGRAM [CLANG]      PROGRAM is tools/check/cuda_check.c, built
#
# Fails if a kernel does not compile, if one could not be launched, or if a hot one (arguments.h) spills registers.
# NVRTC and ptxas 12.9 come from their Python packages, pinned, into build/deps/cuda; or name them: NVRTC=libnvrtc.so
# PTXAS=ptxas. clang is a second compiler for the same file: its output must assemble and be launchable.
set -eu
cd "$(dirname "$0")/../.."
program=$1 clang=${2-}
deps=build/deps/cuda out=build/cuda-check
python=${PYTHON:-python3}
mkdir -p $out

die() { echo "mtan: tools/check/cuda_check.sh: $*" >&2; exit 2; }

fetch() {
    [ "$(uname -sm)" = "Linux x86_64" ] || die "no packages for this machine: name NVRTC= and PTXAS="
    mkdir -p $deps
    cat >$deps/packages.txt <<EOT
nvidia-cuda-nvrtc-cu12==12.9.86 --hash=sha256:210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
nvidia-cuda-nvcc-cu12==12.9.86 --hash=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
EOT
    $python -m pip download -q --no-deps --require-hashes -r $deps/packages.txt -d $deps >$deps/log 2>&1 ||
        { tail -n 5 $deps/log >&2; die "cannot fetch NVRTC and ptxas: name NVRTC=libnvrtc.so and PTXAS=ptxas"; }
    for wheel in $deps/*.whl; do $python -m zipfile -e "$wheel" $deps/files; done
    rm -f $deps/*.whl
    chmod +x $deps/files/nvidia/cuda_nvcc/bin/ptxas
}

if [ -z "${NVRTC-}" ] || [ -z "${PTXAS-}" ]; then
    [ -x $deps/files/nvidia/cuda_nvcc/bin/ptxas ] && [ -f $deps/files/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 ] || fetch
fi
nvrtc=${NVRTC:-$deps/files/nvidia/cuda_nvrtc/lib/libnvrtc.so.12}
ptxas=${PTXAS:-$deps/files/nvidia/cuda_nvcc/bin/ptxas}
LD_LIBRARY_PATH=$(dirname "$nvrtc"):${LD_LIBRARY_PATH-}
export LD_LIBRARY_PATH

# for every kernel: name threads hot
printf '#include "platform/cuda/arguments.h"\n#define X(name, a, x, y, hot) KERNEL name x y hot\nMTAN_CUDA_KERNELS(X)\n' |
    ${CC:-cc} -E -P -I. - | tr ';' '\n' | sed 's/KERNEL/\n&/g' | awk '$1 == "KERNEL" { print $2, $3 * $4, $5 }' >$out/kernels.txt

# table PTXAS-OUTPUT COMPILER CARD STRICT: a line for each kernel. On both cards a multiprocessor has 64 warps, 32
# blocks, 65536 registers (allocated in units of 256 per warp, for a multiple of 4 warps) and 96 KB of shared memory (in
# units of 256 bytes); a block gets at most 48 KB.
table() {
    awk -v compiler="$2" -v card="$3" -v strict="$4" '
    function up(x, to) { return int((x + to - 1) / to) * to }
    function least(a, b) { return a < b ? a : b }
    FNR == NR { threads[$1] = $2; hot[$1] = $3; order[++n] = $1; next }
    /Compiling entry/ { split($0, part, "\047"); name = part[2]; sub(/_kernel$/, "", name) }
    /bytes stack frame/ { spills[name] = $5 + $9 }
    /Used [0-9]+ registers/ {
        for (i = 1; i <= NF; i++) {
            if ($(i + 1) == "registers,") registers[name] = $i
            if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared[name] = $i
        }
    }
    END {
        printf "\n%s, %s\n%-24s %7s %9s %6s %7s %6s %9s\n", compiler, card, "kernel", "threads", "registers", "spills", "shared", "blocks", "occupancy"
        for (k = 1; k <= n; k++) {
            name = order[k]
            if (!(name in registers)) { print name ": did not come out of the compiler"; bad = 1; continue }
            warps = up(threads[name], 32) / 32
            by_registers = int(int(65536 / up(registers[name] * 32, 256) / 4) * 4 / warps)
            by_shared = shared[name] > 0 ? int(98304 / up(shared[name], 256)) : 32
            blocks = least(least(32, int(64 / warps)), least(by_registers, by_shared))
            if (shared[name] > 49152 || threads[name] > 1024) blocks = 0
            why = blocks < 1 ? "  CANNOT BE LAUNCHED" : strict && hot[name] && spills[name] > 0 ? "  SPILLS" : ""
            if (why != "") bad = 1
            printf "%-24s %7d %9d %6d %7d %6d %8d%%%s\n", name, threads[name], registers[name], spills[name], shared[name], blocks, 100 * blocks * warps / 64, why
        }
        exit bad
    }' $out/kernels.txt "$1"
}

status=0
check() { # compiler, its PTX, name of the files, whether spills count
    for card in "sm_52:Titan X (Maxwell)" "sm_61:Titan X (Pascal)"; do
        arch=${card%%:*}
        "$ptxas" -v -arch "$arch" "$2" -o "$out/$3-$arch.cubin" 2>"$out/$3-$arch.txt" ||
            { cat "$out/$3-$arch.txt" >&2; die "ptxas does not take what $1 made for $arch"; }
        table "$out/$3-$arch.txt" "$1" "${card#*:}, $arch" "$4" || status=1
    done
}

"$program" "$nvrtc" platform/cuda/kernels.cu platform/cuda compute_52 $out/nvrtc.ptx
for arch in sm_52 sm_61; do "$program" "$nvrtc" platform/cuda/kernels.cu platform/cuda $arch $out/nvrtc-$arch.cubin; done
check "NVRTC and ptxas" $out/nvrtc.ptx nvrtc 1

if [ -z "$clang" ] || ! "$clang" --print-targets 2>/dev/null | grep -q nvptx64; then
    echo; echo "missing  clang that compiles for NVIDIA: its part of the check is left out"
else
    "$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_52 -nocudainc -nocudalib -Wno-unknown-cuda-version -O3 \
        -ffp-contract=off -std=c++11 -Xclang -target-feature -Xclang +ptx64 -include tools/check/cuda_check_clang.h \
        -S platform/cuda/kernels.cu -o $out/clang.ptx
    check "$("$clang" --version | sed -n '1s/.*\(clang version [0-9.]*\).*/\1/p')" $out/clang.ptx clang 0
fi
echo
if [ $status = 0 ]; then echo "every kernel can be launched on both cards, no hot one spills"; else echo "the check failed"; fi
exit $status
