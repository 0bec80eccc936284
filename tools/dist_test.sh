#!/usr/bin/env bash
# Test with several processes on this machine, or on each of NNODES machines:
#   tools/dist_test.sh CONFIG CHECKPOINT GPUS [flags of tools/test.py]
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: $0 CONFIG CHECKPOINT GPUS [flags of tools/test.py]" >&2; exit 2; }
exec "$(dirname "$0")/torchrun.sh" "$3" test.py "$1" "$2" "${@:4}"
