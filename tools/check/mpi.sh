#!/bin/sh
# Trains over 1, 2 and 4 MPI ranks of one machine, each with 1 and 2 threads, in float and in double, and compares every
# rank's weights and reports bit for bit with those of a single process without MPI. Needs mpicc and mpirun (Debian:
# libopenmpi-dev, openmpi-bin). Then it tries a number of ranks that must be refused, and makes the same comparison for
# whole runs of the command: build/mtan-mpi train --distributed against build/mtan train, on data made here.
#   mpi.sh [CC]     CC: the compiler of the single process and, if mpicc respects OMPI_CC or MPICH_CC, of the ranks
# The last line is the sum: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=build/mpi-check cc=${1:-cc} passed=0 failed=0
for tool in mpicc mpirun; do
    command -v $tool >/dev/null 2>&1 && continue
    echo "skipped: no $tool; on Debian: apt-get install libopenmpi-dev openmpi-bin"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
done
rm -rf $dir && mkdir -p $dir
export OMPI_CC="$cc" MPICH_CC="$cc"

# Open MPI refuses to run as root, or with more ranks than cores, unless told otherwise; other MPIs ignore these
# settings.
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_btl_vader_single_copy_mechanism=none

warn='-std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror'
files='tests/library/mpi_program.c tests/support/tiny_model.c tests/support/ladder.c tests/support/check.c platform/pool.c mtan.c'

verdict() { # name, status, log
    if [ "$2" = 0 ]; then passed=$((passed + 1)) && echo "ok      $1"
    else failed=$((failed + 1)) && echo "FAILED  $1" && tail -n 20 "$3"; fi
}

# The compiler's warnings are errors, except those of MPI's own header.
build() { # real, flags
    # shellcheck disable=SC2086 # flags and files are several words
    "$cc" $warn -O2 -ffp-contract=off -I. -Itests/support -DMTAN_GOLDEN_DIR='"golden"' $2 $files -lm -pthread -o "$dir/one-$1" &&
        mpicc $warn -O2 -ffp-contract=off -I. -Itests/support -DMTAN_GOLDEN_DIR='"golden"' -DMTAN_MPI $2 $files platform/ranks.c -lm \
            -pthread -o "$dir/many-$1"
}

same() { # real, ranks, threads: every rank's file must equal that of one process
    run=$dir/$1-$2x$3
    timeout 120 mpirun -n "$2" "$dir/many-$1" "$run" "$3" || return
    for rank in $(seq 0 $(($2 - 1))); do cmp "$dir/one-$1.0" "$run.$rank" || return; done
}

for real in float double; do
    log=$dir/$real.log
    build $real "$([ $real = float ] || echo -DMTAN_DOUBLE)" >"$log" 2>&1 && "$dir/one-$real" "$dir/one-$real" 1 >>"$log" 2>&1
    status=$?
    verdict "$real, one process: $(wc -l <"$dir/one-$real.0" 2>/dev/null || echo 0) results" $status "$log"
    [ $status = 0 ] || continue
    for ranks in 1 2 4; do
        for threads in 1 2; do
            same $real $ranks $threads >"$log" 2>&1
            verdict "$real, ranks $ranks, threads $threads: the same bits" $? "$log"
        done
    done
done

log=$dir/three.log
! timeout 120 mpirun -n 3 "$dir/many-float" "$dir/three" 1 >"$log" 2>&1 && [ "$(grep -c '^mtan: 3 ranks: ' "$log")" = 1 ] && [ ! -e $dir/three.0 ]
verdict "3 ranks are refused" $? "$log"

# The command. Steps of 32 records in shards of 8, dropout and thinning on.
awk 'BEGIN { srand(7); print "record,time,channel,value"
    for (r = 0; r < 120; r++) for (k = 0; k < 12; k++) print r "," rand() * 24 ",c" k % 3 "," (r % 2) * 2 + rand() }' >$dir/events.csv
awk 'BEGIN { print "record,label"; for (r = 0; r < 120; r++) print r "," r % 2 }' >$dir/labels.csv
train() { # out, command words...
    run=$1
    shift
    "$@" --model enc --data $dir/events.csv --labels $dir/labels.csv --epochs 3 --batch 32 --enc-hidden 24 --embed 16 \
        --ref-points 16 --dropout 0.3 --thin 0.2 --quiet --threads 1 --out "$run"
}
log=$dir/command.log
train $dir/run-one build/mtan train own >"$log" 2>&1
verdict "command, one process" $? "$log"
for ranks in 1 2 4; do
    { train $dir/run-$ranks timeout 120 mpirun -n $ranks build/mtan-mpi train own --distributed &&
        build/mtan compare $dir/run-one/last.safetensors $dir/run-$ranks/last.safetensors; } >"$log" 2>&1
    verdict "command, ranks $ranks: the same bits" $? "$log"
done

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
