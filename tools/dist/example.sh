#!/bin/sh
# The model of the examples: trained on the patients of tools/demo/example.sh, small enough for 64 KB of flash, int8, as a C header.
# The scalar backend has no choice of instructions, so the same header comes out on every machine of this kind.
#   tools/dist/example.sh MTAN OUT.h
set -eu
mtan=$1 out=$2 work=$(dirname "$2")/example
tools=$(dirname "$0")/..
rm -rf "$work" && mkdir -p "$work"
"$tools/demo/example.sh" "$work"
"$mtan" train own --model enc --data "$work/events.csv" --labels "$work/labels.csv" --out "$work/run" --flash 64k --lr 0.003 --epochs 60 \
    --backend scalar --threads 1 --quiet
"$mtan" quantize "$work/run/best.safetensors" "$work/int8.safetensors" --backend scalar --quiet >/dev/null
"$mtan" export "$work/int8.safetensors" --c -o "$out" --quiet
