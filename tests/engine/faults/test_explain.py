"""Errors of frameworks and data workers become one sentence with a remedy."""

import errno
import os

import pytest
from torch.utils.data import DataLoader

from vit_plugin.engine.faults.explain import error_sentence
from vit_plugin.errors import ConfigError

MESSAGE = "The image 'a.png' cannot be read.\nhint: download it again."


class Damaged:
    """A data set that rejects every sample."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> None:
        raise ConfigError(MESSAGE)


@pytest.mark.parametrize('workers', [0, 1])
def test_error_of_a_data_worker_has_no_traceback(workers):
    with pytest.raises(ConfigError) as error:
        next(iter(DataLoader(Damaged(), num_workers=workers)))
    assert error_sentence(error.value) == MESSAGE


@pytest.mark.parametrize(
    ('error', 'words'),
    [
        (
            AssertionError('``AmpOptimizerWrapper`` is only available training on gpu'),
            'give --amp, or type=',
        ),
        (
            RuntimeError(
                '[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: not enough '
                'memory: you tried to allocate 4000000000000 bytes.'
            ),
            'there is not enough memory; give a smaller',
        ),
        (OSError(errno.ENOMEM, 'Cannot allocate memory'), 'there is not enough memory; give'),
        (RuntimeError("can't start new thread"), 'raise the limit of processes (ulimit -u)'),
        (
            RuntimeError(
                'unable to open shared memory object </torch_1_2> in read-write mode: Too many '
                'open files (24)'
            ),
            'raise it (ulimit -n)',
        ),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), 'a.png'), 'raise it (ulimit -n)'),
        (
            RuntimeError('unable to mmap 112 bytes from file </torch_1_2>: Invalid argument (22)'),
            'make /dev/shm larger',
        ),
        (
            RuntimeError('unable to mmap 112 bytes from file </data/a.pth>: No such device (19)'),
            'unable to mmap 112 bytes from file </data/a.pth>',
        ),
        (ModuleNotFoundError("No module named 'mmcv._ext'"), "imports=['vit_plugin.detection']"),
        (
            RuntimeError('The `file_client_args` is deprecated, please use `backend_args` instead'),
            'give the same dict as backend_args',
        ),
    ],
)
def test_errors_of_frameworks_get_a_remedy(error, words):
    assert words in error_sentence(error)


def test_remedy_for_too_little_memory_is_that_of_the_command():
    assert error_sentence(MemoryError(), 'give a smaller --img-size') == (
        'there is not enough memory; give a smaller --img-size.'
    )


@pytest.mark.parametrize(
    ('number', 'words'),
    [
        (errno.ENOENT, "'a.png' cannot be used ({}); check it, or give another path."),
        (errno.EROFS, "'a.png' cannot be written ({}); check it, or give another path."),
        (errno.ENOSPC, "'a.png' cannot be written ({}); make room, or give another path."),
        (errno.EDQUOT, "'a.png' cannot be written ({}); make room, or give another path."),
    ],
)
def test_only_errors_of_space_ask_to_make_room(number, words):
    error = OSError(number, os.strerror(number), 'a.png')
    assert error_sentence(error) == words.format(os.strerror(number))
