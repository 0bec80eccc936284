#!/usr/bin/env bash
# What slurm_train.sh and slurm_test.sh share: srun.sh PARTITION JOB_NAME SCRIPT [arguments]
# GPUS, GPUS_PER_NODE and CPUS_PER_TASK size the job; SRUN_ARGS is passed on to srun.
set -euo pipefail
# shellcheck disable=SC2086
exec srun --partition="$1" --job-name="$2" \
    --gres="gpu:${GPUS_PER_NODE:-8}" --ntasks="${GPUS:-8}" --ntasks-per-node="${GPUS_PER_NODE:-8}" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 ${SRUN_ARGS:-} \
    python -u "$(dirname "$0")/$3" "${@:4}" --launcher slurm
