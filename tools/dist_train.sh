#!/usr/bin/env bash
# Train with several processes on this machine, or on each of NNODES machines:
#   tools/dist_train.sh CONFIG GPUS [flags of tools/train.py]
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 CONFIG GPUS [flags of tools/train.py]" >&2; exit 2; }
exec "$(dirname "$0")/torchrun.sh" "$2" train.py "$1" "${@:3}"
