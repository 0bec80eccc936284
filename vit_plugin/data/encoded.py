"""Data sets whose images are encoded bytes inside larger files."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from mmengine.dataset import Compose
from torch.utils.data import Dataset

from vit_plugin.arguments.fields import Typed
from vit_plugin.files.images import decode

from .images import reading


class EncodedImages(Dataset):
    """A map-style data set for image classification. A subclass says where the bytes and the label of a sample are.

    Each sample goes through the pipeline as ``img`` (height, width, 3) in BGR, uint8, with ``gt_label``, ``img_path``,
    ``img_shape``, ``ori_shape`` and ``sample_idx``. So the pipeline has no ``LoadImageFromFile``.

    Args:
        pipeline: transforms.
        classes: names of the classes.
    """

    def __init__(self, pipeline: Sequence[Typed | Callable], classes: Sequence[str] | None) -> None:
        self.pipeline = Compose(list(pipeline))
        self.metainfo = dict(classes=tuple(classes)) if classes else {}

    @abstractmethod
    def encoded(self, index: int) -> tuple[bytes, str, int | None]:
        """The encoded image, where it is, and its label."""

    def __getitem__(self, index: int) -> Any:
        content, path, label = self.encoded(index)
        with reading(path):
            image = decode(content, 'color')
        sample = dict(img=image, img_path=path, img_shape=image.shape[:2], ori_shape=image.shape[:2], sample_idx=index)
        return self.pipeline(sample if label is None else dict(sample, gt_label=label))
