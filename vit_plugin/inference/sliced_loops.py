"""Validation and test of a detector by slices of whole images, as ``infer --slices`` predicts."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from mmengine.runner import TestLoop, ValLoop
from mmengine.runner.amp import autocast
from mmengine.structures import InstanceData

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import LOOPS

from .image_transforms import PipelineTransform
from .slices import SlicedDetector
from .trained_model import TrainedModel

with needed_by('SlicedValLoop'):
    make_importable()
    from mmdet.models.utils.misc import samplelist_boxtype2tensor

# Limit of boxes per slice; COCO's average precision counts no more than this in a whole image.
MAX_SLICE_BOXES = 100


class _SlicedLoop:
    """Mixin for MMEngine's loops: predict slices of each image, and the whole.

    Objects found more than once count once, see
    :class:`~vit_plugin.inference.slices.SlicedDetector`.

    Args:
        side: side of a slice, in pixels of the image.
        **kwargs: arguments of MMEngine's loop.

    Attributes:
        stage: ``'val'`` or ``'test'``, as in the names of the hooks' methods.
    """

    stage = ''
    runner: Any
    evaluator: Any
    dataloader: Any
    fp16: bool

    def __init__(self, *args: Any, side: PositiveInt, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.side = side

    @cached_property
    def pixels(self) -> PipelineTransform:
        """The transform from a slice to a sample of the model's input."""
        return PipelineTransform(self.runner.cfg)

    @torch.no_grad()
    def run_iter(self, idx: int, data_batch: Mapping[str, Any]) -> None:
        """See MMEngine's loop."""
        batch = dict(batch_idx=idx, data_batch=data_batch)
        self.runner.call_hook(f'before_{self.stage}_iter', **batch)
        with autocast(enabled=self.fp16):
            outputs = self.predict_slices(self.runner.model, data_batch)
        self.evaluator.process(data_samples=outputs, data_batch=data_batch)
        self.runner.call_hook(f'after_{self.stage}_iter', **batch, outputs=outputs)

    def predict_slices(self, model: Any, data_batch: Mapping[str, Any]) -> Sequence[Any]:
        """The samples of a batch with the model's predictions, in pixels of the files.

        It reads each file again, since the data loader has already resized its image.
        """
        meta, batch_size = self.evaluator.dataset_meta, self.dataloader.batch_size
        trained = TrainedModel(model, self.runner.cfg, meta, self.pixels)
        sliced = SlicedDetector(
            trained.predict,
            self.side,
            trained.classes,
            score_thr=0.0,
            batch_size=batch_size,
            max_boxes=MAX_SLICE_BOXES,
        )
        samples = data_batch['data_samples']
        samplelist_boxtype2tensor(samples)
        for sample in samples:
            (prediction,) = sliced([trained.read(sample.img_path)])
            arrays = dict(
                bboxes=prediction.boxes, scores=prediction.scores, labels=prediction.labels
            )
            if prediction.masks is not None:
                arrays['masks'] = prediction.masks
            sample.pred_instances = InstanceData(
                **{name: torch.as_tensor(values) for name, values in arrays.items()}
            )
        return samples


@LOOPS.register_module()
class SlicedValLoop(_SlicedLoop, ValLoop):
    """MMEngine's ``ValLoop`` for a detector, with predictions on slices of each image."""

    stage = 'val'


@LOOPS.register_module()
class SlicedTestLoop(_SlicedLoop, TestLoop):
    """MMEngine's ``TestLoop`` for a detector, with predictions on slices of each image."""

    stage = 'test'
