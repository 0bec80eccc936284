#!/usr/bin/env bash
# What dist_train.sh and dist_test.sh share: torchrun.sh PROCESSES SCRIPT [arguments]
set -euo pipefail
exec python -m torch.distributed.run \
    --nnodes="${NNODES:-1}" --node-rank="${NODE_RANK:-0}" --nproc-per-node="$1" \
    --master-addr="${MASTER_ADDR:-127.0.0.1}" --master-port="${PORT:-29500}" \
    "$(dirname "$0")/$2" "${@:3}" --launcher pytorch
