import random

import numpy as np
import pytest
import torch

from vit_plugin.data.seeded import STEP, VALIDATION
from vit_plugin.engine.exact import randomness


def draws(seed: int, kind: int, iteration: int) -> tuple[float, float, float]:
    randomness.seed_step(seed, kind, iteration)
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_the_numbers_of_a_step_are_its_own(monkeypatch):
    places = [(0, STEP, 0), (0, STEP, 1), (1, STEP, 0), (0, VALIDATION, 1), (0, STEP, 2**33)]
    found = [draws(*place) for place in places]
    assert found == [draws(*place) for place in places]
    monkeypatch.setattr(randomness, 'get_rank', lambda: 1)
    found += [draws(*place) for place in places]
    assert all(len(set(column)) == len(found) for column in zip(*found, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason='no GPU')
def test_the_device_is_seeded_too():
    numbers = []
    for _ in range(2):
        randomness.seed_step(0, STEP, 5)
        numbers.append(torch.rand(3, device='cuda').tolist())
    assert numbers[0] == numbers[1]
