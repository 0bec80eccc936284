#!/usr/bin/env bash
# Train on a SLURM cluster:
#   tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [flags of tools/train.py]
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $0 PARTITION JOB_NAME CONFIG WORK_DIR [flags of tools/train.py]" >&2; exit 2; }
exec "$(dirname "$0")/srun.sh" "$1" "$2" train.py "$3" --work-dir "$4" "${@:5}"
