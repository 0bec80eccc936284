"""Replacements of MMPretrain's preprocessors: normalization, padding and Mixup."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.model import BaseDataPreprocessor, stack_batch
from torch import Tensor

from vit_plugin.arguments.fields import Numbers, PositiveInt
from vit_plugin.errors import EXTRAS, ConfigError


class ClsDataPreprocessor(BaseDataPreprocessor):
    """Images of 0 to 255 -> a normalized batch on the device, with the labels of its samples.

    Args:
        mean, std: normalization of the channels, after ``to_rgb``. Default: none.
        pad_size_divisor, pad_value: images are padded at the right and bottom to a multiple of
            ``pad_size_divisor``.
        to_rgb: whether to convert three channels from BGR to RGB.
        num_classes: number of classes.
        batch_augments: ``dict(augments=...)`` with Mixup (arXiv:1710.09412), for training.

    Raises:
        ConfigError: for other augmentations, for Mixup without ``num_classes``, or if only one of
            ``mean`` and ``std`` is given.
    """

    def __init__(
        self,
        mean: Numbers | None = None,
        std: Numbers | None = None,
        pad_size_divisor: PositiveInt = 1,
        pad_value: float = 0,
        to_rgb: bool = False,
        num_classes: PositiveInt | None = None,
        batch_augments: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.pad_size_divisor, self.pad_value, self.to_rgb = pad_size_divisor, pad_value, to_rgb
        self.num_classes: Any = num_classes
        self.mixup_alpha: Any = None
        for name, values in (('mean', mean), ('std', std)):
            buffer = None if values is None else torch.tensor(values).view(-1, 1, 1)
            self.register_buffer(name, buffer, persistent=False)
        if (mean is None) != (std is None):
            raise ConfigError(
                f'data_preprocessor: mean={mean} and std={std} normalize together; give both, or '
                'neither.'
            )
        if batch_augments:
            augments = batch_augments.get('augments', ())
            augments = [augments] if isinstance(augments, Mapping) else [*augments]
            types = [isinstance(cfg, Mapping) and cfg.get('type') for cfg in augments]
            if (
                types != ['Mixup']
                or {*augments[0]} - {'_scope_'} != {'type', 'alpha'}
                or len(batch_augments) > 1
                or not num_classes
            ):
                raise ConfigError(
                    'data_preprocessor: there are no batch_augments but Mixup, with alpha and with '
                    f'num_classes; for others, pip install {EXTRAS["mmpretrain"]}.'
                )
            self.mixup_alpha = augments[0]['alpha']

    def normalize(self, images: Tensor) -> Tensor:
        """Images (..., C, H, W), normalized, in float32."""
        images = images.flip(-3) if self.to_rgb and images.shape[-3] == 3 else images
        return images.float() if self.mean is None else (images.float() - self.mean) / self.std

    def normalized_inputs(self, data: dict) -> Any:
        """The normalized ``inputs`` on the device, a tensor or a list."""
        batch = self.cast_data(data['inputs'])
        return self.normalize(batch) if torch.is_tensor(batch) else [*map(self.normalize, batch)]

    def forward(self, data: dict, training: bool = False) -> dict:
        """Stack the normalized images, a tensor or a list, to a batch.

        With Mixup, labeled samples get the scores of the classes as ``gt_score``. Images are only
        mixed in training.

        Returns:
            The batch as ``inputs``, and ``data_samples``.
        """
        inputs, samples = self.normalized_inputs(data), data.get('data_samples') or []
        batch = stack_batch([*inputs], self.pad_size_divisor, self.pad_value)
        labeled = [sample for sample in samples if 'gt_label' in sample]
        for sample in labeled:
            sample.gt_label = torch.as_tensor(sample.gt_label, device=self.device)
        if self.mixup_alpha and labeled:
            scores = torch.stack(
                [F.one_hot(sample.gt_label, self.num_classes).sum(0) for sample in labeled]
            )
            if training:
                batch, scores = self.mix_pairs(batch, scores)
            for sample, score in zip(labeled, scores, strict=True):
                sample.gt_score = score
        return dict(inputs=batch, data_samples=samples)

    def mix_pairs(self, images: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
        """The weighted mean of pairs of images, and of their scores."""
        # MMPretrain draws a number to choose the augmentation; draw it too, so that the same seed
        # gives the same mixtures.
        np.random.choice(1)
        weight = np.random.beta(self.mixup_alpha, self.mixup_alpha)
        partner = torch.randperm(len(images))
        return tuple(weight * x + (1 - weight) * x[partner] for x in (images, scores.float()))


class SelfSupDataPreprocessor(ClsDataPreprocessor):
    """A batch of images of 0 to 255, or a list of batches of views -> the same, normalized."""

    def forward(self, data: dict, training: bool = False) -> dict:
        """See :meth:`ClsDataPreprocessor.forward`."""
        return dict(inputs=self.normalized_inputs(data), data_samples=data.get('data_samples'))
