"""The features of images as vectors in a file, to search and compare them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from PIL import Image
from timm.data import create_transform
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import replacing
from vit_plugin.models.classifier import Classifier

from .inference import build_pipeline, read_image

THREADS = 4  # that read images while the model computes


class Embedder(NamedTuple):
    """What makes vectors of images.

    Attributes:
        prepare: an image file -> what ``vectors`` takes. It is called in several threads.
        vectors: several of these -> features (N, C) in float32.
    """
    prepare: Callable[[str], Any]
    vectors: Callable[[Sequence[Any]], np.ndarray]


@torch.no_grad()
def vectors_of(model: nn.Module, inputs: Tensor) -> np.ndarray:
    """What the head of a classifier gets of normalised images (N, C, H, W): features (N, C') in float32.

    Args:
        model: a classifier of MMPretrain, in eval mode.
        inputs: the images.

    Raises:
        ConfigError: if the head gets tokens or maps.
    """
    found = model.extract_feat(inputs)[-1]
    if found.ndim != 2:
        raise ConfigError(f'The head gets features of shape {tuple(found.shape)}, and one vector for an image is '
                          "wanted: pool them with the neck TokenPooling, or choose the out_type 'cls_token' or "
                          "'avg_featmap'.")
    return found.float().cpu().numpy()


def of_config(model: nn.Module, cfg: Config) -> Embedder:
    """The embedder of a classifier with its config, whose test pipeline the images go through.

    Raises:
        ConfigError: if it is no classifier.
    """
    if not hasattr(model, 'extract_feat') or cfg.get('default_scope') != 'mmpretrain':
        raise ConfigError(f"default_scope={cfg.get('default_scope')!r}: only a classifier of MMPretrain has one vector "
                          'for an image; give its config, or --arch and --weights.')
    pipeline = build_pipeline(cfg)

    def prepare(path: str) -> Any:
        read_image(path)  # says in a sentence what is wrong
        return pipeline(dict(img_path=path, img_id=0))

    def vectors(samples: Sequence[Any]) -> np.ndarray:
        return vectors_of(model, model.data_preprocessor(pseudo_collate(samples), False)['inputs'])

    return Embedder(prepare, vectors)


def of_model(model: Classifier) -> Embedder:
    """The embedder of a model of :func:`vit_plugin.create_model`. Its ``data_config`` says what the pixels must be."""
    transform, device = create_transform(**model.data_config), next(model.parameters()).device

    def prepare(path: str) -> Tensor:
        image = Image.fromarray(np.ascontiguousarray(read_image(path)[..., ::-1]))
        return transform(image.convert('L') if model.data_config['input_size'][0] == 1 else image)

    @torch.no_grad()
    def vectors(images: Sequence[Tensor]) -> np.ndarray:
        return model.forward_features(torch.stack(list(images)).to(device)).float().cpu().numpy()

    return Embedder(prepare, vectors)


def embed(embedder: Embedder, files: Sequence[str], batch_size: int = 32) -> Iterator[np.ndarray]:
    """The features (N, C) of each batch of image files, in their order.

    Raises:
        ConfigError: if an image cannot be read.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        batches = (files[i:i + batch_size] for i in range(0, len(files), batch_size))
        begin = partial(pool.map, embedder.prepare)
        waiting = begin(next(batches))
        for batch in batches:
            ready, waiting = list(waiting), begin(batch)  # the next is read while this one is computed
            yield embedder.vectors(ready)
        yield embedder.vectors(list(waiting))


def normalised(features: np.ndarray) -> np.ndarray:
    """Rows (N, C) of length 1, so that products are cosines. A row of zeros stays."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(lengths > 0, lengths, 1)


def save_embeddings(target: str | Path, names: Sequence[str], features: np.ndarray) -> None:
    """Write ``names`` (N, ) and ``features`` (N, C) in float32 as a ``.npz``.

    Raises:
        ConfigError: see :func:`~vit_plugin.files.complete.replacing`.
    """
    with replacing(target) as path:
        np.savez(path, names=np.array(names), features=features.astype(np.float32))
