"""Damaged checkpoints for tests of their readers. A seed determines the damage."""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

State = dict[Any, Any]
BLOCK = r'(blocks|layers|layer)\.\d+\.|encoderblock_\d+/'  # a block's keys in every format


def _on_tensor(
    change: Callable[[Tensor, random.Random], Any],
) -> Callable[[State, random.Random], Any]:
    """Turn a change of a tensor into a change of a state: of one random tensor in it."""

    def mutate(state: State, rng: random.Random) -> Any:
        key = rng.choice(sorted(state))
        return {**state, key: change(state[key], rng)}

    return mutate


def _renamed(state: State, rng: random.Random, name: Callable[[str], Any]) -> State:
    """Rename one random key."""
    key = rng.choice(sorted(state))
    return {name(key) if other == key else other: value for other, value in state.items()}


def _one_block_less(state: State, rng: random.Random) -> State:
    """Remove all keys of a random block."""
    blocks = sorted({match[0] for key in state if (match := re.search(BLOCK, key))})
    removed = rng.choice(blocks)
    return {key: value for key, value in state.items() if removed not in key}


def _all_integers(state: State, rng: random.Random) -> State:
    """Convert all tensors to integers or bools."""
    dtype = rng.choice((torch.int8, torch.int64, torch.uint8, torch.bool))
    return {key: (value * 30).to(dtype) for key, value in state.items()}


def _cycle(state: State, rng: random.Random) -> State:
    """Return a checkpoint that contains itself."""
    content: State = {rng.choice(('epoch', 'args')): 3}
    content[rng.choice(('state_dict', 'model', 'module', 'teacher'))] = content
    return content


def _long_cycle(state: State, rng: random.Random) -> State:
    """Return a checkpoint that contains itself four levels deep."""
    inner: State = {}
    content: State = {'state_dict': {'model': {'module': inner}}}
    inner['teacher'] = content
    return content


def _wrapped(state: State, rng: random.Random) -> Any:
    """Put the state into up to 200 nested dictionaries."""
    content: Any = state
    for _ in range(rng.choice((1, 2, 5, 200))):
        content = {rng.choice(('state_dict', 'model', 'module', 'teacher')): content}
    return content


# Changes of a tensor, by name.
TENSORS = {
    'sparse': lambda x, rng: x.to_sparse(),
    'scalar': lambda x, rng: x.flatten()[0].clone(),
    'empty': lambda x, rng: x.new_empty(rng.choice(((0,), (0, 4), (1, 0, 32), (0, 0, 0, 0)))),
    'huge': lambda x, rng: (
        x.flatten()[:1].expand(2**40).reshape(1, 2**35, 32)
        if rng.random() < 0.5
        else (x.flatten()[:1].expand(2**33))
    ),
    'empty but long': lambda x, rng: x.new_empty((2**40, 0)),
    'one axis more': lambda x, rng: x[None].clone(),
    'one axis less': lambda x, rng: x[0].clone() if x.ndim > 1 else x[:1].clone(),
    'cut': lambda x, rng: x[:-1].clone(),
    'doubled': lambda x, rng: torch.cat((x, x)),
    'transposed': lambda x, rng: x.flip(0).transpose(0, -1),
    'integers': lambda x, rng: x.to(rng.choice((torch.int64, torch.int8, torch.bool))),
    'half': lambda x, rng: x.to(rng.choice((torch.float16, torch.bfloat16, torch.float64))),
    'complex': lambda x, rng: x.to(torch.complex64),
    'quantized': lambda x, rng: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
    'meta': lambda x, rng: x.to('meta'),
    'nested tensor': lambda x, rng: torch.nested.nested_tensor([x.flatten(), x.flatten()[:2]]),
    'no tensor': lambda x, rng: rng.choice((None, 3, 'text', [1, 2], {'a': 1}, b'bytes')),
    'not finite': lambda x, rng: torch.full_like(x, rng.choice((float('nan'), float('inf')))),
}
# Changes of a whole state, by name.
STATES = {
    'cycle': _cycle,
    'long cycle': _long_cycle,
    'wrapped': _wrapped,
    'nothing': lambda state, rng: rng.choice(
        ({}, [], None, 3, 'text', {'state_dict': {}}, {'model': None})
    ),
    'one key less': lambda state, rng: {
        key: state[key] for key in sorted(state)[: rng.randrange(len(state))]
    },
    'one block less': _one_block_less,
    'all integers': _all_integers,
    'one key more': lambda state, rng: {
        **state,
        rng.choice(('stray', 'blocks.0.stray', '', '.', 'blocks.9.x')): torch.ones(2),
    },
    'key that is no string': lambda state, rng: _renamed(
        state, rng, lambda key: rng.choice((3, None, (1, 2), b'x'))
    ),
    'long number in a key': lambda state, rng: _renamed(
        state, rng, lambda key: key.replace('0', '9' * 5000)
    ),
    'Arabic digit in a key': lambda state, rng: _renamed(
        state, rng, lambda key: key.replace('0', '\u0663')
    ),
    'reversed key': lambda state, rng: _renamed(state, rng, lambda key: key[::-1]),
    'grid of positions': lambda state, rng: {
        **state,
        'position._extra_state': rng.choice(
            (
                torch.tensor([4, 4]),
                torch.tensor([-4, -4]),
                torch.tensor([2**40, 2**40]),
                torch.tensor(4),
                torch.ones(2),
                torch.tensor([2, 8]),
                'text',
            )
        ),
    },
    'unchanged': lambda state, rng: dict(state),
}
CHANGES = STATES | {name: _on_tensor(change) for name, change in TENSORS.items()}
assert len(CHANGES) == len(STATES) + len(TENSORS), 'a name of STATES is also in TENSORS'


def mutations(states: dict[str, State], count: int, seed: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield ``count`` damaged copies of random states, each with a description of the damage.

    All changes are used in turn.

    Args:
        states: state dicts of a model by the names of their formats.
        count: number of damaged copies.
        seed: seed of all random choices.
    """
    for i in range(count):
        rng = random.Random(f'{seed}-{i}')
        file_format, change = rng.choice(sorted(states)), list(CHANGES)[i % len(CHANGES)]
        yield f'{i}: {change} of {file_format}', CHANGES[change](states[file_format], rng)
