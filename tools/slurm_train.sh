#!/usr/bin/env bash
# Train on a SLURM cluster, as a batch job that saves when it has to leave, queues again and goes on by itself:
#   tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [flags of tools/train.py]
# GPUS, GPUS_PER_NODE and CPUS_PER_TASK size the job; SBATCH_ARGS and SRUN_ARGS are passed on to sbatch and srun.
# SAVE_TIMEOUT: seconds before the time limit at which the run is asked to save.
# MAX_RESTARTS: the run also goes on after a crash, until it has started again so often for any reason.
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $0 PARTITION JOB_NAME CONFIG WORK_DIR [flags of tools/train.py]" >&2; exit 2; }
size=(--ntasks="${GPUS:-8}" --ntasks-per-node="${GPUS_PER_NODE:-8}" --cpus-per-task="${CPUS_PER_TASK:-5}")

if [ -z "${VIT_PLUGIN_TOOLS:-}" ]; then  # not in the job yet, which runs a copy of this file elsewhere
    if [ -e "$4/last_checkpoint" ] && ! printf '%s\n' "${@:5}" | grep -q '^--resume'; then
        echo "Error: $4 has the checkpoints of a run, which this job would go on from once it starts again; give" \
            "--resume to go on with it now, or another WORK_DIR." >&2
        exit 1
    fi
    mkdir -p "$4"
    VIT_PLUGIN_TOOLS="$(cd "$(dirname "$0")" && pwd)"
    export VIT_PLUGIN_TOOLS
    # shellcheck disable=SC2086
    exec sbatch --partition="$1" --job-name="$2" "${size[@]}" --gres="gpu:${GPUS_PER_NODE:-8}" \
        --requeue --open-mode=append --output="$4/slurm-%j.out" --signal="USR1@${SAVE_TIMEOUT:-300}" \
        ${SBATCH_ARGS:-} "$0" "$@"
fi

trap : TERM USR1  # they are for the processes that train; this script stays to queue the job again
restarts="${SLURM_RESTART_COUNT:-0}"
resume=''
# Before its first checkpoint a run begins as it was asked to, which may be from the weights or the state of another run.
if [ "$restarts" != 0 ] && [ -e "$4/last_checkpoint" ]; then resume=--resume; fi
rm -f "$4/preempted"
status=0
# shellcheck disable=SC2086
srun "${size[@]}" --kill-on-bad-exit=1 ${SRUN_ARGS:-} python -u "$VIT_PLUGIN_TOOLS/train.py" "$3" --work-dir "$4" \
    "${@:5}" $resume --launcher slurm || status=$?
if [ -e "$4/preempted" ] || { [ "$status" != 0 ] && [ "$restarts" -lt "${MAX_RESTARTS:-0}" ]; }; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
