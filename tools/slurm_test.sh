#!/usr/bin/env bash
# Test on a SLURM cluster:
#   tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [flags of tools/test.py]
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $0 PARTITION JOB_NAME CONFIG CHECKPOINT [flags of tools/test.py]" >&2; exit 2; }
exec "$(dirname "$0")/srun.sh" "$1" "$2" test.py "$3" "$4" "${@:5}"
