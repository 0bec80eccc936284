#!/usr/bin/env bash
# What dist_train.sh and dist_test.sh share: torchrun.sh PROCESSES SCRIPT [arguments]
# On several hosts, run it on each of them with the same NNODES, MASTER_ADDR (the first host) and PORT, and with its own
# NODE_RANK (0 on the first host). LOCAL_ADDR is an address of this host for the others, if its name is none.
# MAX_RESTARTS: how often all processes start again after a crash; give --resume too, so that they go on.
# JOIN_TIMEOUT: seconds to wait for the other hosts. SAVE_TIMEOUT: seconds to save in after a signal.
set -euo pipefail
nodes="${NNODES:-${PET_NNODES:-1}}" node="${NODE_RANK:-${PET_NODE_RANK:-0}}"  # Kubernetes gives torchrun's own names
port="${PORT:-${PET_MASTER_PORT:-29500}}" host="${MASTER_ADDR:-${PET_MASTER_ADDR:-127.0.0.1}}"
if [ "$node" = 0 ] && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "Error: the port $port is taken by another program; give another, such as PORT=$((port + 1))." >&2
    exit 1
fi
serves=$([ "$node" = 0 ] && echo 1 || echo 0)
export PET_LOG_DIR="${PET_LOG_DIR:-/dev/null}"  # otherwise torchrun leaves a temporary folder behind
# torchrun's own store would keep what the processes said before a restart, and hosts count the restarts differently.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
export PET_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1 PET_SHUTDOWN_TIMEOUT="${SAVE_TIMEOUT:-300}"
exec python "$(dirname "$0")/torchrun.py" \
    --nnodes="$nodes" --nproc-per-node="$1" --max-restarts="${MAX_RESTARTS:-0}" \
    --rdzv-backend=c10d --rdzv-endpoint="$host:$port" --rdzv-id="${RDZV_ID:-vit_plugin}" \
    --rdzv-conf="is_host=$serves,join_timeout=${JOIN_TIMEOUT:-600}" ${LOCAL_ADDR:+--local-addr="$LOCAL_ADDR"} \
    "$(dirname "$0")/$2" "${@:3}" --launcher pytorch
