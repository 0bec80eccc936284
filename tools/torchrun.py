"""torchrun that ends with the status of a signal, and explains a failed rendezvous.

    python tools/torchrun.py [flags of torchrun] SCRIPT [arguments]

A signal is passed on to the processes, and the status is 128 + its number, so that Kubernetes and
others see which signal it was. If a process ends with such a status by itself, torchrun does too.
Other failures have status 1, as usual.
"""

import sys

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError


def main() -> int:
    """Run torchrun. Returns the status."""
    args = run.parse_args(None)
    try:
        run.run(args)
    except SignalException as error:
        return 128 + error.sigval
    except ChildFailedError as error:  # the processes have printed why
        status = error.get_first_failure()[1].exitcode
        return status if status > 128 else 1
    except RendezvousError as error:
        print(
            f'Error: the {args.nnodes} machines did not find each other at {args.rdzv_endpoint} '
            f'({type(error).__name__}); start this on every machine, with the same MASTER_ADDR '
            'and PORT, which the others can reach.',
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
