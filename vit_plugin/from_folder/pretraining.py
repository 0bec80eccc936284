"""The recipe of ``vit-plugin pretrain``, and continued models written in their original format."""

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from mmengine.registry import MODELS

from anyfolder.readers.findings import Findings
from anyfolder.readers.image_sizes import MAX_HEADERS, read_sizes
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing, is_encodable
from anyfolder.readers.records import ImageRecord
from anyfolder.readers.splits import Split
from anyfolder.wording import counted
from vit_plugin.arch import parse_arch
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import rounded_up
from vit_plugin.suggestions import check_choice
from vit_plugin.weights.hub import timm_name
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.source_layout import export_to_source_layout, is_hub_folder

from .classifier_images import CLASSIFIER_SCHEDULES, image_size
from .methods import METHODS, BackboneSpec
from .model_recipe import CONTINUED_TASKS
from .request import Request
from .task_recipe import TaskRecipe

LARGE_VIEW_SIDE = 224  # pixels; side of a large view when a model is continued
BACKBONE = 'backbone.'  # prefix of the backbone in the weights of a whole model
CONTINUED_FOLDER = 'continued'  # folder for the result in the format of the original weights


class Pretraining(TaskRecipe):
    """Recipe of a pre-training on all images of a folder except its validation and test splits.

    Raises:
        ConfigError: if the method is unknown, or does not fit the teacher.
    """

    # Overrides attributes of TaskRecipe, which describes them.
    schedules: ClassVar = {
        kind: schedule._replace(
            batch=(16, 256),
            rate=1e-3,
            rate_batch=256,
            schedule_epochs=10,
            weight_decay=0.05,
            layer_decay=1.0,
        )
        for kind, schedule in CLASSIFIER_SCHEDULES.items()
    }
    monitor = ''
    # The last batch of an epoch may be too small.
    loader: ClassVar = dict(drop_last=True, collate_fn=dict(type='default_collate'))

    def __init__(self, request: Request, decode_all: bool = False) -> None:
        self.name = request.method or ('distill' if request.teacher else 'mocov3')
        check_choice('--method', self.name, METHODS)
        self.method = METHODS[self.name]
        self.continued_tasks = CONTINUED_TASKS if self.method.continues else ()
        if self.method.continues and not request.weights:
            raise ConfigError(
                f'--method {self.name} continues a model; give it by --weights: a folder of '
                'transformers, timm://NAME, hf://ORG/NAME, an RF-DETR, a run, or a file with its '
                '--arch timm://NAME.'
            )
        super().__init__(request, decode_all)
        if (self.name == 'distill') != bool(request.teacher):
            raise ConfigError(
                f'--method {self.name}: a teacher is needed to distill, and for nothing else; give '
                '--teacher with --method distill, or neither.'
            )
        if self.start.wrapped:
            raise self.start.wrapped_error('vit-plugin pretrain')
        # Weights of a run with the same method include neck and head; other weights do not.
        self.loads_model = is_mmengine_training(request.weights) and not self.method.continues

    @cached_property
    def listing(self) -> Listing:
        """The images, see :func:`read_images`."""
        return read_images(self.tree(), self.request.data)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Height and width of the images, in whole patches."""
        continues = self.method.continues
        default = LARGE_VIEW_SIDE if continues else image_size(self.start, self.listing)
        side = self.request.img_size or default
        side = rounded_up(side, self.stem(side).stride)
        return side, side

    def backbone(self, side: int) -> Section:
        """The backbone for crops of this side. A continued model keeps its native size."""
        default_type = dict(type='vit_plugin.VisionTransformer')
        if not self.method.continues:
            return {**default_type, **self.start.backbone(side), 'img_size': side}
        if saved := self.start.continued:
            backbone = saved.cfg.model.backbone.to_dict()
        else:
            native_size = self.start.native_size()
            backbone = {**default_type, **self.start.backbone(side), 'img_size': native_size}
        backbone.pop('frozen_stages', None)
        return backbone

    def stem(self, side: int) -> Any:
        """The stem of the backbone on the meta device."""
        with torch.device('meta'):
            return MODELS.build(self.backbone(side)).patch_embed

    @property
    def bases(self) -> Sequence[str]:  # type: ignore[override]
        """The runtime, and the necks and heads of the method."""
        runtime = '_base_/default_runtime.py'
        base = self.method.base
        return [runtime, f'_base_/selfsup/{base}.py'] if base else [runtime]

    def summary(self) -> str:
        """The images and the length of the training, in sentences."""
        count, (side, _) = len(self.listing.train), self.size
        return (
            f'{counted(count, "image")} without labels, by {self.name}. '
            f'{counted(self.epochs, "epoch")} of {counted(count // self.batch_size, "step")}, '
            f'images of {side} x {side} pixels.'
        )

    @cached_property
    def spec(self) -> BackboneSpec:
        """The backbone for images of this size."""
        side = self.size[0]
        stem, backbone = self.stem(side), self.backbone(side)
        return BackboneSpec(
            backbone=backbone,
            width=parse_arch(backbone['arch']).embed_dims,
            size=side,
            stride=stem.stride,
            is_hybrid=bool(stem.feature_channels),
            with_flip=not self.request.no_flip,
        )

    def model(self) -> Section:
        """The backbone, and overrides of the method's neck and head."""
        teacher = dict(teacher=self.request.teacher) if self.request.teacher else {}
        model = {**self.method.model(self.spec), **teacher}
        if self.start.weights and not self.loads_model:
            weights = dict(type='Pretrained', checkpoint=self.start.weights)
            opened = self.start.opened
            if isinstance(opened, Checkpoint) and any(
                name.startswith(BACKBONE) for name in opened.weights
            ):
                weights['prefix'] = BACKBONE
            model['backbone'] = dict(model['backbone'], init_cfg=weights)
        return model

    def preprocessor(self) -> Section:
        """The normalization."""
        return dict(type=self.method.preprocessor, **self.start.normalization, to_rgb=True)

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The transforms of an image in training; there is no test."""
        transforms = self.method.transforms(self.spec)
        return [dict(type='vit_plugin.LoadImage'), *transforms, dict(type='PackInputs')], []

    def dataset(self, split: Split) -> Section:
        """MMPretrain's data set without labels."""
        return dict(
            type='CustomDataset',
            data_prefix=str(self.listing.root),
            ann_file=self.list_path(split),
            with_label=False,
        )


def is_mmengine_training(weights: str | None) -> bool:
    """True if weights come from a training with MMEngine."""
    return bool(
        weights
        and timm_name(weights) is None
        and open_checkpoint(weights, payload=False).meta.get('cfg')
    )


def read_images(tree: Tree, data: str) -> Listing:
    """All images of a folder, without labels, except validation and test splits.

    Raises:
        ConfigError: if there are fewer than two images.
    """
    findings = Findings()
    records = []
    for path in tree.images:
        name = str(path.absolute())
        if tree.split(path) in ('val', 'test'):
            findings.warn('images of validation and test splits, left out', path)
        elif not is_encodable(name) or name.splitlines() != [name]:
            findings.warn('images whose names do not fit on a line of text, left out', ascii(name))
        else:
            records.append(ImageRecord(path))
    records = read_sizes(tree, records, findings, MAX_HEADERS)
    if len(records) < 2:
        raise ConfigError(
            f'{data!r} has {counted(len(records), "image")} to learn from, and at least two are '
            'needed; give another folder.'
        )
    parts: dict[Any, list[ImageRecord]] = dict(train=records, val=[], test=[])
    return Listing(
        'images without labels',
        tree.folder,
        classes=(),
        parts=parts,
        held_out=False,
        findings=findings,
    )


def write_original(weights: str, checkpoint: str, work_dir: Path) -> str:
    """Write a continued model in its original format, see :func:`export_to_source_layout`.

    Args:
        weights: the original.
        checkpoint: the final checkpoint of the pre-training.
        work_dir: the folder of its run.
    """
    original = open_checkpoint(weights)
    target = work_dir / CONTINUED_FOLDER
    shutil.rmtree(target, ignore_errors=True)
    if not is_hub_folder(original):
        name = original.path.name if original.path else f'{timm_name(original.source)}.safetensors'
        target /= name if Path(name).suffix else f'{name}.pth'
    return export_to_source_layout(original, open_checkpoint(checkpoint), target)
