"""Random numbers of a step follow from its position in the run."""

import random

import numpy as np
import pytest
import torch

from vit_plugin.data.seeded import STEP, VALIDATION
from vit_plugin.engine.exact import randomness


def draws(seed: int, purpose: int, iteration: int) -> tuple[float, float, float]:
    """The next number of each generator after seeding a step."""
    randomness.seed_step(seed, purpose, iteration)
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_random_numbers_depend_on_seed_purpose_iteration_and_rank(monkeypatch):
    positions = [(0, STEP, 0), (0, STEP, 1), (1, STEP, 0), (0, VALIDATION, 1), (0, STEP, 2**33)]
    numbers = [draws(*position) for position in positions]
    assert numbers == [draws(*position) for position in positions]
    monkeypatch.setattr(randomness, 'get_rank', lambda: 1)
    numbers += [draws(*position) for position in positions]
    for of_generator in zip(*numbers, strict=True):
        assert len(set(of_generator)) == len(numbers)


@pytest.mark.skipif(not torch.cuda.is_available(), reason='no GPU')
def test_the_gpu_is_seeded_too():
    numbers = []
    for _ in range(2):
        randomness.seed_step(0, STEP, 5)
        numbers.append(torch.rand(3, device='cuda').tolist())
    assert numbers[0] == numbers[1]
