#!/bin/sh
# Checks the symbols of the library's object file: every global name starts with mtan_; nothing is undefined except the
# four mem* functions and the compiler's own helpers; there is no writable data. With and without optimisation, hosted
# and freestanding, on x86 with and without FMA.
#   symbols.sh CC...
# Before that it checks that the modules of the tools do not call exit or abort, so that other programs can call them.
# The allocator may abort if no attempt handles its failure.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build/symbols
# The compiler's helpers: stack protector, the position-independent table, 32-bit ARM's run-time ABI, and soft-float or
# wide-integer arithmetic (__mulsf3, __udivdi3, __floatundidf, __extendsfdf2 and the like).
helpers='__stack_chk_(fail|guard)|_GLOBAL_OFFSET_TABLE_|__aeabi_[a-z0-9_]+|__[a-z]+[sdt][fi][sdt]?[fi]?[0-9]?'
bad=0
ends='(^|[^A-Za-z0-9_])(exit|_exit|_Exit|quick_exit|abort) *\('
if find tools/mtan tools/data tools/baselines platform -name cortex-m -prune -o -name '*.[ch]' -exec grep -nHE "$ends" {} + |
    grep -v '^tools/data/memory\.c:[0-9]*: *abort();$'; then
    echo "  a module ends the program: return an error instead"
    bad=1
fi
check() { # compiler, flags...
    object=build/symbols/$(echo "$*" | tr -cd 'a-zA-Z0-9-').o
    "$@" -std=c99 -c mtan.c -o "$object"
    wrong=$(
        nm "$object" | awk -v helpers="^($helpers)\$" '
            $1 == "U" && $2 !~ /^mem(cpy|set|cmp|move)$/ && $2 !~ helpers { print "  undefined: " $2 }
            NF == 3 && $2 ~ /[A-Z]/ && $3 !~ /^mtan_/ { print "  global without mtan_: " $3 }
            NF == 3 && $2 == "C" { print "  common (writable): " $3 }'
        # .data.rel.ro holds pointers that the loader fills in once and then write-protects.
        size -A "$object" | awk '
            /^\.(t?data|t?bss)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print "  writable: " $1 ", " $2 " bytes" }'
    )
    if [ -n "$wrong" ]; then
        echo "$*:"
        echo "$wrong"
        bad=1
    fi
}

for cc in "$@"; do
    check "$cc" -O0
    check "$cc" -O2
    check "$cc" -O2 -ffreestanding
    [ "$(uname -m)" != x86_64 ] || check "$cc" -O0 -mfma
done
exit $bad
