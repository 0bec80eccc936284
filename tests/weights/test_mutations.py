"""Damaged checkpoints raise one sentence or load; none ends in a traceback or hangs."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.runner import load_checkpoint
from mutations import mutations

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import FORMATS, export, open_checkpoint, reading_safely, recognize
from vit_plugin.weights.opening import Checkpoint

CPU_SECONDS = 20  # limit for reading a checkpoint in one way


@contextmanager
def time_limit(action: str) -> Iterator[None]:
    """Raise a ``TimeoutError`` in this context after ``CPU_SECONDS`` of the process."""

    def give_up(*args: Any) -> None:
        raise TimeoutError(f'{action} took more than {CPU_SECONDS} s')

    previous = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def by_load_from(tiny: dict, content: Any, path: Path) -> None:
    """Read a file as MMEngine does for ``load_from``."""
    with reading_safely():
        load_checkpoint(VisionTransformer(**tiny), str(path))


def by_conversion(tiny: dict, content: Any, path: Path) -> None:
    """Read a file as ``vit-plugin convert`` does."""
    export(recognize(open_checkpoint(path).weights), 'timm', heads=2)


# Ways to read a damaged checkpoint. load_state_dict and weights take its content, the others its
# file.
READERS: dict[str, Callable[[dict, Any, Path], Any]] = {
    'load_weights': lambda tiny, content, path: load_weights(VisionTransformer(**tiny), path),
    'init_cfg': lambda tiny, content, path: VisionTransformer(
        **tiny, init_cfg=dict(type='Pretrained', checkpoint=str(path))
    ).init_weights(),
    'load_from': by_load_from,
    'load_state_dict': lambda tiny, content, path: VisionTransformer(**tiny).load_state_dict(
        content
    ),
    'convert': by_conversion,
    'weights': lambda tiny, content, path: Checkpoint('x.pth', content).weights,
}


def outcome(reader: str, tiny: dict, name: str, content: Any, path: Path) -> str:
    """How a checkpoint is read: 'loaded', 'sentence', "torch's own", or any other error's text.

    Args:
        reader: a key of ``READERS``.
        tiny: arguments of a small backbone.
        name: the name of the mutation.
        content: the damaged checkpoint.
        path: the file with this content. Missing if torch cannot save it.
    """
    try:
        with time_limit(f'{reader} of {name}'):
            READERS[reader](tiny, content, path)
    except ConfigError as error:
        return 'sentence' if '\n' not in str(error) else 'sentences'
    except Exception as error:
        if (
            reader == 'load_state_dict'
            and isinstance(error, (RuntimeError, TypeError))
            and ('loading state_dict' in str(error) or not isinstance(content, dict))
        ):
            return "torch's own"  # about missing keys, shapes, or a content that is not a dict
        return f'{type(error).__name__} {reader} {name}: {error}'
    return 'loaded'


def must_not_load(reader: str, name: str) -> bool:
    """Whether a mutation must be refused: integers as weights, and missing blocks.

    Missing blocks under our names, which are timm's, are left to torch, which raises if it is
    strict.
    """
    if 'one block less' in name:
        return reader in ('load_weights', 'init_cfg') or (
            reader == 'load_from' and not name.endswith(('vit_plugin', 'timm'))
        )
    return 'all integers' in name and reader != 'weights'


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('count', [50, pytest.param(1000, marks=pytest.mark.nightly)])
def test_damaged_checkpoints_are_one_sentence_or_load(tiny, tmp_path, count):
    own = {
        key: value.detach().clone() for key, value in VisionTransformer(**tiny).state_dict().items()
    }
    states = {
        name: FORMATS[name].export(own, heads=2)[0]
        for name in ('vit_plugin', 'timm', 'jax', 'hf', 'mmpretrain')
    }
    outcomes: Counter[str] = Counter()
    for i, (name, content) in enumerate(mutations(states, count)):
        path = tmp_path / 'x.pth'
        try:
            torch.save(content, path)
        except Exception:  # such as a tensor that torch cannot save: only the content remains
            path.unlink(missing_ok=True)
        # The quick test tries two readers of each checkpoint: 'weights', and one of the others in
        # turn.
        others = [reader for reader in READERS if reader != 'weights']
        readers = list(READERS) if count > 50 else [others[i % len(others)], 'weights']
        for reader in readers:
            if path.exists() or reader in ('load_state_dict', 'weights'):
                result = outcome(reader, tiny, name, content, path)
                if result == 'loaded' and must_not_load(reader, name):
                    result = f'loaded by {reader}: {name}'
                outcomes[result] += 1
    print(dict(outcomes))
    wrong = {
        result: number
        for result, number in outcomes.items()
        if result not in ('sentence', 'loaded', "torch's own")
    }
    assert not wrong, wrong
    # The mutations are neither all fatal nor all harmless.
    assert outcomes['sentence'] > 0.3 * outcomes.total()
    assert outcomes['loaded'] > 0.05 * outcomes.total()
