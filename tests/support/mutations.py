"""Damaged checkpoints, as a function of a seed."""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

State = dict[Any, Any]
BLOCK = r'(blocks|layers|layer)\.\d+\.|encoderblock_\d+/'  # of every format


def _on_tensor(
    change: Callable[[Tensor, random.Random], Any],
) -> Callable[[State, random.Random], Any]:
    """Turn a change of a tensor into a change of a checkpoint: of one random tensor in it."""

    def mutate(state: State, chance: random.Random) -> Any:
        key = chance.choice(sorted(state))
        return {**state, key: change(state[key], chance)}

    return mutate


def _renamed(state: State, chance: random.Random, name: Callable[[str], Any]) -> State:
    """Rename one random key."""
    key = chance.choice(sorted(state))
    return {name(key) if other == key else other: value for other, value in state.items()}


def _one_block_less(state: State, chance: random.Random) -> State:
    """Remove all keys of a random block."""
    blocks = sorted({match[0] for key in state if (match := re.search(BLOCK, key))})
    removed = chance.choice(blocks)
    return {key: value for key, value in state.items() if removed not in key}


def _all_integers(state: State, chance: random.Random) -> State:
    dtype = chance.choice((torch.int8, torch.int64, torch.uint8, torch.bool))
    return {key: (value * 30).to(dtype) for key, value in state.items()}


def _cycle(state: State, chance: random.Random) -> State:
    """A checkpoint that contains itself."""
    content: State = {chance.choice(('epoch', 'args')): 3}
    content[chance.choice(('state_dict', 'model', 'module', 'teacher'))] = content
    return content


def _long_cycle(state: State, chance: random.Random) -> State:
    """A checkpoint that contains itself four levels deep."""
    inner: State = {}
    content: State = {'state_dict': {'model': {'module': inner}}}
    inner['teacher'] = content
    return content


def _nested(state: State, chance: random.Random) -> Any:
    """The state inside of many dictionaries."""
    content: Any = state
    for _ in range(chance.choice((1, 2, 5, 200))):
        content = {chance.choice(('state_dict', 'model', 'module', 'teacher')): content}
    return content


# Changes of a tensor.
TENSORS = {
    'sparse': lambda x, chance: x.to_sparse(),
    'scalar': lambda x, chance: x.flatten()[0].clone(),
    'empty': lambda x, chance: x.new_empty(chance.choice(((0,), (0, 4), (1, 0, 32), (0, 0, 0, 0)))),
    'huge': lambda x, chance: (
        x.flatten()[:1].expand(2**40).reshape(1, 2**35, 32)
        if chance.random() < 0.5
        else (x.flatten()[:1].expand(2**33))
    ),
    'empty but long': lambda x, chance: x.new_empty((2**40, 0)),
    'one axis more': lambda x, chance: x[None].clone(),
    'one axis less': lambda x, chance: x[0].clone() if x.ndim > 1 else x[:1].clone(),
    'cut': lambda x, chance: x[:-1].clone(),
    'doubled': lambda x, chance: torch.cat((x, x)),
    'turned': lambda x, chance: x.flip(0).transpose(0, -1),
    'whole numbers': lambda x, chance: x.to(chance.choice((torch.int64, torch.int8, torch.bool))),
    'half': lambda x, chance: x.to(chance.choice((torch.float16, torch.bfloat16, torch.float64))),
    'complex': lambda x, chance: x.to(torch.complex64),
    'quantized': lambda x, chance: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
    'meta': lambda x, chance: x.to('meta'),
    'nested': lambda x, chance: torch.nested.nested_tensor([x.flatten(), x.flatten()[:2]]),
    'no tensor': lambda x, chance: chance.choice((None, 3, 'text', [1, 2], {'a': 1}, b'bytes')),
    'not finite': lambda x, chance: torch.full_like(x, chance.choice((float('nan'), float('inf')))),
}
# Changes of a checkpoint, which include those of one tensor in it.
CHECKPOINTS = {
    'cycle': _cycle,
    'long cycle': _long_cycle,
    'nested': _nested,
    'nothing': lambda state, chance: chance.choice(
        ({}, [], None, 3, 'text', {'state_dict': {}}, {'model': None})
    ),
    'one key less': lambda state, chance: {
        key: state[key] for key in sorted(state)[: chance.randrange(len(state))]
    },
    'one block less': _one_block_less,
    'all integers': _all_integers,
    'one key more': lambda state, chance: {
        **state,
        chance.choice(('stray', 'blocks.0.stray', '', '.', 'blocks.9.x')): torch.ones(2),
    },
    'no string': lambda state, chance: _renamed(
        state, chance, lambda key: chance.choice((3, None, (1, 2), b'x'))
    ),
    'long number': lambda state, chance: _renamed(
        state, chance, lambda key: key.replace('0', '9' * 5000)
    ),
    'other digits': lambda state, chance: _renamed(
        state, chance, lambda key: key.replace('0', '\u0663')
    ),
    'misspelled': lambda state, chance: _renamed(state, chance, lambda key: key[::-1]),
    'grid': lambda state, chance: {
        **state,
        'position._extra_state': chance.choice(
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
    'as they are': lambda state, chance: dict(state),
} | {name: _on_tensor(change) for name, change in TENSORS.items()}


def mutations(states: dict[str, State], count: int, seed: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield ``count`` damaged copies of random states, each with a name that tells the damage.

    All changes are used in turn.
    """
    for i in range(count):
        chance = random.Random(f'{seed}-{i}')
        form, change = chance.choice(sorted(states)), list(CHECKPOINTS)[i % len(CHECKPOINTS)]
        yield f'{i}: {change} of {form}', CHECKPOINTS[change](states[form], chance)
