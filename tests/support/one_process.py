"""Run by test_one_process.py: loads models in one process and prints a digest of their predictions.

    python one_process.py HOW MODELS [MODULE ...]

HOW is in_order, in_threads, in_all_orders, in_fork or in_spawn; the last two use a child process.
MODELS is a JSON object of names and paths; so is the output, with digests in place of the paths.
The modules are imported first, as far as they can be: models must predict the same whatever the
process has imported and loaded before.
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
    """A short hash of all that a model predicts for the image. ``model`` may be a path."""
    import vit_plugin

    loaded = model if callable(model) else vit_plugin.load(model, device='cpu')
    prediction = loaded(IMAGE)
    hashed = hashlib.sha256(repr(prediction.names).encode())
    for name in ('labels', 'scores', 'boxes', 'masks', 'map', 'depth'):
        value = getattr(prediction, name, None)
        hashed.update(b'' if value is None else value.tobytes())
    return hashed.hexdigest()[:12]


def in_order(models: dict[str, str]) -> dict[str, str]:
    """Load and run one model after another."""
    return {name: digest(path) for name, path in models.items()}


def in_threads(models: dict[str, str]) -> dict[str, str]:
    """Load and run all models at the same time."""
    with ThreadPoolExecutor(len(models)) as pool:
        return dict(zip(models, pool.map(digest, models.values()), strict=True))


def in_pool(method: str, models: dict[str, str]) -> dict[str, str]:
    """Run models in a child process, after this process has loaded and used them.

    ``method`` is ``fork`` or ``spawn``.

    The child gets the loaded models and loads each again. Both must predict the same.
    """
    import torch

    import vit_plugin

    torch.set_num_threads(2)
    loaded = [vit_plugin.load(path, device='cpu') for path in models.values()]
    for model in loaded:
        digest(model)
    with multiprocessing.get_context(method).Pool(1) as pool:
        digests = pool.map_async(digest, [*loaded, *models.values()]).get(timeout=200)
    assert digests[: len(models)] == digests[len(models) :]
    return dict(zip(models, digests, strict=False))


def in_all_orders(models: dict[str, str]) -> dict[str, str]:
    """Load the models in all orders; each must predict the same as when it is loaded first.

    Orders with the same beginning share a process, which forks for each model that may come next.
    """
    import vit_plugin.inference.load  # noqa: F401  all children need it; it imports no framework

    with tempfile.TemporaryFile('a+') as lines:  # a pipe would be full before it is read
        fork_for_each(models, (), lines)
        lines.seek(0)
        # The digest of the last model of each order.
        digests = {tuple(order): text for order, text in map(json.loads, lines)}
    assert {order for order in digests if len(order) == len(models)} == {*permutations(models)}
    different = [order for order, text in digests.items() if text != digests[order[-1:]]]
    assert not different, different
    return {name: digests[name,] for name in models}


def fork_for_each(models: dict[str, str], done: tuple[str, ...], lines: TextIO) -> None:
    """Load each model that is not yet done in a child of its own, which continues with the others.

    Each child writes a line with its order and the digest of its last model.
    """
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
    functions = dict(in_order=in_order, in_threads=in_threads, in_all_orders=in_all_orders)
    paths = json.loads(models)
    digests = functions[how](paths) if how in functions else in_pool(how.removeprefix('in_'), paths)
    print(json.dumps(digests))
