"""Explain errors of MMEngine, torch and the machine in one sentence with a remedy."""

import errno
import re
import socket

from vit_plugin.arguments import why_not_built
from vit_plugin.errors import ConfigError, MissingExtraError, is_out_of_memory, named_line

# The advice if a training runs out of memory.
TRAIN_WITH_LESS_MEMORY = (
    'give a smaller train_dataloader.batch_size (--batch-size with --data), '
    'model.backbone.with_cp=True or --amp'
)
# Known errors: a pattern of their text, and a sentence with places for the groups that matched.
KNOWN_ERRORS = (
    (
        r'(EADDRINUSE|[Aa]ddress already in use)',
        'the port of rank 0 is taken by another program; give another, such as PORT=29501',
    ),
    (
        r'Timed out after \d+ seconds waiting for clients\. (\d+)/(\d+) clients joined',
        'only {0} of {1} processes came within env_cfg.dist_cfg.timeout; start all of them, or '
        'give a longer time-out',
    ),
    (
        r'client socket has timed out after .* trying to connect to \(([^,]+), (\d+)\)',
        'rank 0 did not answer at {0}:{1} within env_cfg.dist_cfg.timeout; start all processes, '
        'and check that MASTER_ADDR and MASTER_PORT are those of the first machine',
    ),
    (
        r'got mixed torch\.Tensor and DTensor',
        'sharding gathers the parameters of a module when it is called, and the forward uses those '
        'of one that it does not call; name in parts_to_shard() what the forward calls, or leave '
        'sharding out',
    ),
    (
        r'AmpOptimizerWrapper`` is only available',
        "MMEngine's AmpOptimWrapper needs a GPU; give --amp, or "
        "type='vit_plugin.AmpOptimWrapper', which works on a CPU too",
    ),
    (
        r'`file_client_args` is deprecated',
        'MMDetection no longer takes file_client_args; give the same dict as backend_args',
    ),
    (
        r"No module named 'mmcv._ext'",
        "mmcv was not compiled; add custom_imports=dict(imports=['vit_plugin.detection']), which "
        'has its ops without a compiler',
    ),
    (
        r'Found no NVIDIA driver|Torch not compiled with (\w+) enabled|'
        r'No (\w+) GPUs are available|invalid device ordinal',
        'this machine does not have the requested device; leave --device out, or give --device cpu',
    ),
    (
        r'DataLoader worker \(pid\(?s?\)? ?([\d, ]+)\) (?:is killed|exited)',
        'a process that loads data was killed (pid {0}), as happens when memory runs out; give '
        'fewer with --cfg-options train_dataloader.num_workers=NUMBER',
    ),
    (
        r"can't start new thread",
        'the system cannot start more threads; raise the limit of processes (ulimit -u) or of '
        'memory (ulimit -v), or give fewer with OMP_NUM_THREADS=1 and num_workers=0 in the data '
        'loaders',
    ),
    (  # tried before the next pattern, which matches some of these errors too
        r'Too many open files',
        'the limit of open files is too low; raise it (ulimit -n), or give fewer num_workers in '
        'the data loaders',
    ),
    (
        r'unable to (?:open shared memory|mmap \d+ bytes from file </torch|write to file </torch)',
        'the shared memory for data workers is full; make /dev/shm larger, or give num_workers=0 '
        'in the data loaders',
    ),
)


def explain_error(error: BaseException, memory_advice: str = TRAIN_WITH_LESS_MEMORY) -> str | None:
    """The sentence to print instead of a traceback, or None for an unknown error.

    Args:
        error: the exception.
        memory_advice: the advice for an out-of-memory error.
    """
    text = str(error)
    if isinstance(error, (ConfigError, MissingExtraError)):
        if not text.startswith('Caught '):
            return text
        # torch puts the traceback of a data worker before its error message.
        class_line = rf'^\S*{type(error).__name__}: '
        return re.split(class_line, text.strip(), flags=re.MULTILINE)[-1]
    explanation = _explain_machine_error(error, memory_advice) or why_not_built(error)
    if not explanation or explanation.endswith(('.', '?')):
        return explanation
    return f'{explanation}.'


def error_sentence(error: BaseException, memory_advice: str = TRAIN_WITH_LESS_MEMORY) -> str:
    """The sentence to print instead of a traceback. For an unknown error, its first line."""
    return explain_error(error, memory_advice) or (
        f'{named_line(error)}; give --traceback to see where it comes from.'
    )


def _explain_machine_error(error: BaseException, memory_advice: str) -> str | None:
    """The sentence for a known error, or an error of a file, without a final period."""
    if is_out_of_memory(error):
        return f'there is not enough memory; {memory_advice}'
    for pattern, sentence_format in KNOWN_ERRORS:
        if match := re.search(pattern, str(error)):
            return sentence_format.format(*(group for group in match.groups() if group))
    if (
        isinstance(error, OSError)
        and not isinstance(error, (socket.gaierror, ConnectionError))
        and error.errno
    ):
        path = f'{error.filename!r}' if error.filename else 'a file'
        lacks_space = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        doing = 'written' if lacks_space or error.errno == errno.EROFS else 'used'
        advice = 'make room' if lacks_space else 'check it'
        return f'{path} cannot be {doing} ({error.strerror}); {advice}, or give another path'
    return None
