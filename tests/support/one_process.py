"""Run by test_one_process.py: load models in one process and print what each predicts, as JSON.

    python one_process.py HOW MODELS [MODULE ...]

MODELS is JSON: names and paths. The modules are imported first, if they can be.
"""

import hashlib
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import permutations
from typing import TextIO

import numpy as np

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 80, 3), np.uint8)


def digest(model) -> str:
    """A short text of all that a model, or that in a file, predicts of the image."""
    import vit_plugin

    found = model if callable(model) else vit_plugin.load(model, device='cpu')
    prediction = found(IMAGE)
    text = hashlib.sha256(repr(prediction.names).encode())
    for name in ('labels', 'scores', 'boxes', 'masks', 'map', 'depth'):
        value = getattr(prediction, name, None)
        text.update(b'' if value is None else value.tobytes())
    return text.hexdigest()[:12]


def in_order(models: dict[str, str]) -> dict[str, str]:
    return {name: digest(path) for name, path in models.items()}


def in_threads(models: dict[str, str]) -> dict[str, str]:
    """All at the same time."""
    with ThreadPoolExecutor(len(models)) as pool:
        return dict(zip(models, pool.map(digest, models.values()), strict=True))


def in_pool(method: str, models: dict[str, str]) -> dict[str, str]:
    """From a process that has loaded and used them; the children load one more each."""
    import torch

    import vit_plugin

    torch.set_num_threads(2)
    loaded = [vit_plugin.load(path, device='cpu') for path in models.values()]
    for model in loaded:
        digest(model)
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.map_async(digest, [*loaded, *models.values()]).get(timeout=200)
    assert found[: len(models)] == found[len(models) :]
    return dict(zip(models, found, strict=False))


def in_all_orders(models: dict[str, str]) -> dict[str, str]:
    """The orders share their beginnings: a process forks for each model that may come next."""
    import vit_plugin.inference.load  # noqa: F401  what all need, without a framework

    with tempfile.TemporaryFile('a+') as lines:  # a pipe would be full before it is read
        fork_for_each(models, (), lines)
        lines.seek(0)
        found = {tuple(order): one for order, one in map(json.loads, lines)}
    assert {order for order in found if len(order) == len(models)} == {*permutations(models)}
    differ = [order for order, one in found.items() if one != found[order[-1:]]]
    assert not differ, differ
    return {name: found[name,] for name in models}


def fork_for_each(models: dict[str, str], done: tuple[str, ...], lines: TextIO) -> None:
    """Load each other model in a child, where the same is done for those that are left."""
    for name in models.keys() - {*done}:
        if child := os.fork():
            assert os.waitpid(child, 0)[1] == 0, (*done, name)
            continue
        status = 1
        with suppress(BaseException):
            order = (*done, name)
            print(json.dumps([order, digest(models[name])]), file=lines, flush=True)
            fork_for_each(models, order, lines)
            status = 0
        os._exit(status)


if __name__ == '__main__':
    warnings.simplefilter('ignore')
    how, models, *modules = sys.argv[1:]
    for module in modules:
        with suppress(Exception):
            importlib.import_module(module)
    ways = dict(in_order=in_order, in_threads=in_threads, in_all_orders=in_all_orders)
    method = how.removeprefix('in_')
    read = json.loads(models)
    print(json.dumps(ways[how](read) if how in ways else in_pool(method, read)))
