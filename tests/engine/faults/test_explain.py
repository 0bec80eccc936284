import errno

import pytest
from torch.utils.data import DataLoader

from vit_plugin.engine.faults.explain import sentence
from vit_plugin.errors import ConfigError


class Damaged:
    """A data set that rejects every sample."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> None:
        raise ConfigError("The image 'a.png' cannot be read: download it again.")


@pytest.mark.parametrize('workers', [0, 1])
def test_a_sentence_of_a_data_worker_comes_without_its_traceback(workers):
    with pytest.raises(ConfigError) as error:
        next(iter(DataLoader(Damaged(), num_workers=workers)))
    assert sentence(error.value) == "The image 'a.png' cannot be read: download it again."


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
        (ModuleNotFoundError("No module named 'mmcv._ext'"), "imports=['vit_plugin.detection']"),
        (
            RuntimeError('The `file_client_args` is deprecated, please use `backend_args` instead'),
            'give the same dict as backend_args',
        ),
    ],
)
def test_what_the_frameworks_say_gets_its_remedy(error, words):
    assert words in sentence(error)


def test_the_remedy_for_too_little_memory_is_that_of_the_command():
    assert sentence(MemoryError(), 'give a smaller --img-size') == (
        'there is not enough memory; give a smaller --img-size.'
    )
