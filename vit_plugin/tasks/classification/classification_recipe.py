"""Recipe of a classifier for a folder of images."""

import math
from functools import cached_property
from typing import ClassVar

from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing, is_encodable
from anyfolder.readers.splits import SEED, Split
from anyfolder.wording import counted
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.from_folder.classifier_images import (
    CLASSIFIER_SCHEDULES,
    evaluation_pipeline,
    image_size,
    read_classes,
    resizing,
)
from vit_plugin.from_folder.framework_lists import as_data_list, as_text_list
from vit_plugin.from_folder.multispectral import multispectral_backbone
from vit_plugin.from_folder.small_hybrids import SMALL_SIDE
from vit_plugin.from_folder.task_recipe import TaskRecipe, flip_steps
from vit_plugin.inference.saved_model import open_model
from vit_plugin.models.classifier import Parts, classifier_parts
from vit_plugin.report.few_images import FEW_VALIDATED

# From scratch, a training with fewer steps is augmented less, and pretrained weights are suggested
# for fewer images.
FEW_STEPS, FEW_IMAGES = 3000, 10_000
MAX_UNSEEN_NAMES = 5  # classes without validation images that the summary names


class ClassificationRecipe(TaskRecipe):
    """Recipe for ``data/{train,val}/<class>/``, ``data/<class>/`` or images and a table."""

    # Overrides attributes of TaskRecipe, which describes them.
    schedules: ClassVar = CLASSIFIER_SCHEDULES
    bases = ('_base_/default_runtime.py',)
    held_out = f'held out, a tenth of each class by seed {SEED}'
    multispectral_preprocessor: ClassVar = dict(to_rgb=False)

    def read(self, tree: Tree) -> Listing:
        return read_classes(tree, self.request)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height of an image, which are equal."""
        side = self.request.img_size or image_size(self.start, self.listing)
        return side, side

    @cached_property
    def has_few_steps(self) -> bool:
        """True if a training from scratch is too short to gain from strong augmentation."""
        steps = self.epochs * math.ceil(len(self.listing.train) / self.batch_size)
        return self.start.from_scratch and steps < FEW_STEPS

    @property
    def monitor(self) -> str:  # type: ignore[override]
        """Mean average precision if an image may have several classes, else the accuracy."""
        return 'multi-label/mAP' if self.listing.multi_label else 'accuracy/top1'

    @property
    def validates_few(self) -> bool:
        """True with few validation images, where the best epoch is mostly luck."""
        return not self.listing.multi_label and 0 < len(self.listing.val) < FEW_VALIDATED

    @property
    def checkpoint_hook(self) -> Section:  # type: ignore[override]
        """Keep the last checkpoint instead of the best one with few validation images."""
        return dict(save_best=None) if self.validates_few else {}

    def summary(self) -> str:
        """The images and the length of the training, with remarks on anything unusual."""
        text, listing = super().summary(), self.listing
        if self.request.teacher:
            text += f' It also learns from {self.request.teacher}.'
        if self.start.wrapped and not self.start.from_scratch and not self.keeps_head:
            text += ' The classifier begins anew.'
        if self.validates_few:
            text += (
                f' {counted(len(listing.val), "validation image")} cannot tell the best epoch: the '
                'last weights are the result.'
            )
        if listing.unseen:
            others = ' and others' if len(listing.unseen) > MAX_UNSEEN_NAMES else ''
            names = ', '.join(listing.unseen[:MAX_UNSEEN_NAMES])
            text += f' None to validate of {names}{others}.'
        if (
            self.start.from_scratch
            and len(listing.train) < FEW_IMAGES
            and self.size[0] > SMALL_SIDE
        ):
            text += (
                ' Few photographs teach little from scratch: --weights '
                'timm://vit_small_patch16_224.augreg_in21k_ft_in1k (Apache 2.0) begins with what a '
                'model has learned on millions.'
            )
        return text

    def model(self) -> Section:
        """The classifier. From scratch, it mixes images in training."""
        listing, size, teacher = self.listing, self.size[0], self.request.teacher
        arguments = multispectral_backbone(self.start, size, listing.bands)
        if self.start.wrapped:
            arguments |= self.start.pooled_output
        components = self.components(self.start.for_size(arguments, size))
        classes: Section = dict(
            num_classes=len(listing.classes), in_channels=components.in_channels
        )
        head = dict(type='MultiLabelLinearClsHead', **classes)
        optional: Section = dict(neck=components.neck) if components.neck else {}
        if not listing.multi_label:
            loss = dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')
            head = dict(type='vit_plugin.ViTClsHead', **classes, loss=loss)
            if self.keeps_head:
                head['init_cfg'] = dict(
                    type='Pretrained', checkpoint=self.start.weights, prefix='head.'
                )
            if self.start.from_scratch and not self.has_few_steps:
                optional['train_cfg'] = dict(augments=[dict(type='Mixup', alpha=0.2)])
        model_type = 'ImageClassifier'
        if teacher:
            model_type = 'vit_plugin.Distiller'
            optional |= dict(teacher=teacher, losses=losses_from(teacher, listing))
        return dict(type=model_type, backbone=components.backbone, head=head, **optional)

    def components(self, backbone: Section) -> Parts:
        """The components of the classifier, with the token pooling of the weights.

        A backbone of another library returns the input of its own classifier, or else feature maps,
        which are averaged.
        """
        start = self.start
        if start.neck:
            backbone = dict(backbone, out_type=start.saved_backbone['out_type'])
            parts = classifier_parts(**backbone)
            channels = parts.in_channels
            if start.neck.get('mode') == 'cls_avg':
                channels *= 2  # the class token and the average side by side
            return Parts(parts.backbone, start.neck, channels)
        if not start.wrapped:
            return classifier_parts(**backbone)
        if not start.from_scratch:
            weights = dict(type='Pretrained', checkpoint=start.weights)
            backbone = dict(backbone, init_cfg=weights)
        neck = None if start.pooled_output else dict(type='GlobalAveragePooling')
        channels = start.build_meta_backbone(0, **backbone).channels[-1]
        return Parts(backbone, neck, channels)

    @property
    def keeps_head(self) -> bool:
        """True if the weights include another library's classifier for the same classes."""
        listing = self.listing
        return not listing.multi_label and [*listing.classes] == self.start.wrapped_classes

    @property
    def loads_model(self) -> bool:  # type: ignore[override]
        """False for another library's weights, which its backbone loads itself."""
        return not self.start.wrapped

    def preprocessor(self) -> Section:
        """The normalization, and the number of classes."""
        listing = self.listing
        return dict(
            num_classes=len(listing.classes),
            **self.start.normalization,
            to_rgb=True,
        )

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The transforms of an image in training, and in a test."""
        size = self.size[0]
        augment = dict(
            type='RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=10
        )
        augments = self.start.from_scratch and not self.has_few_steps
        train = [
            dict(type='vit_plugin.LoadImage'),
            dict(
                type='RandomResizedCrop',
                scale=size,
                crop_ratio_range=(0.5 if self.has_few_steps else 0.25, 1.0),
                **resizing(self.start),
            ),
            *flip_steps(self.request, direction='horizontal'),
            *([augment] if augments else []),
            dict(type='PackInputs'),
        ]
        return train, evaluation_pipeline(self.start, size)

    @cached_property
    def fits_text_list(self) -> bool:
        """True if a text list can express the images and their classes."""
        listing = self.listing
        return not listing.multi_label and all(
            is_encodable(listing.name_of(record))
            for records in listing.parts.values()
            for record in records
        )

    @property
    def list_suffix(self) -> str:  # type: ignore[override]
        """A text list, or JSON if that is not enough."""
        return '.txt' if self.fits_text_list else '.json'

    def list_of(self, split: Split) -> str:
        """The images of a split with the numbers of their classes."""
        listing, records = self.listing, self.listing.parts[split]
        if self.fits_text_list:
            return as_text_list(listing, records, with_labels=True)
        return as_data_list(listing, records)

    def dataset(self, split: Split) -> Section:
        """MMPretrain's data set."""
        root, file = str(self.listing.root), self.list_path(split)
        if self.fits_text_list:
            return dict(type='CustomDataset', data_prefix=root, ann_file=file)
        dataset_type = 'MultiLabelDataset' if self.listing.multi_label else 'BaseDataset'
        return dict(type=dataset_type, data_prefix=dict(img_path=root), ann_file=file)

    def metric(self, split: Split) -> Section:
        """Mean average precision over classes if an image may have several, else the accuracy."""
        if self.listing.multi_label:
            return dict(type='AveragePrecision')
        return dict(type='Accuracy', topk=(1, 5) if len(self.listing.classes) > 5 else (1,))


def losses_from(teacher: str, listing: Listing) -> list[Section]:
    """The distillation losses: of logits if the teacher has the same classes, else of features.

    Raises:
        ConfigError: if the teacher cannot be read.
    """
    classes = None
    if '://' not in teacher:
        classes = open_model(teacher).checkpoint.dataset_meta.get('classes')
    if list(classes or ()) == list(listing.classes) and not listing.multi_label:
        return [dict(type='vit_plugin.LogitDistillation', temperature=2.0)]
    from vit_plugin.from_folder.methods import FEATURE_LOSSES

    return FEATURE_LOSSES
