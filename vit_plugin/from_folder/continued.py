"""Recognize a complete trained model, and adapt it to the classes of a new data set.

A complete model has a backbone, a neck and a head. Only layers whose size depends on the classes
start untrained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mmengine.config import Config
from mmengine.registry import MODELS

from anyfolder.readers.listing import Listing
from anyfolder.wording import counted
from vit_plugin.arch import parse_arch
from vit_plugin.arguments import look_up_class
from vit_plugin.errors import ConfigError
from vit_plugin.inference.saved_model import saved_config
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.saved_settings import read_settings

# Section of a model -> its argument for the number of classes.
CLASS_COUNT_ARGUMENTS = {
    'bbox_head': 'num_classes',
    'backbone': 'num_classes',
    'decode_head': 'num_classes',
    'panoptic_head': 'num_things_classes',
    'panoptic_fusion_head': 'num_things_classes',
}
DEFAULT_ARCH = 'B/16'  # the default of VisionTransformer
DEFAULT_QUERIES = 100  # default of `num_queries` in an EoMT, a PMT and a Mask2Former


@dataclass(frozen=True)
class ContinuedModel:
    """A complete trained model, which can be trained on other data.

    Attributes:
        cfg: its config.
        classes: the names of its classes; empty if unknown.
        tasks: the tasks that it can be trained for.
    """

    cfg: Config
    classes: list[str]
    tasks: tuple[str, ...]

    @property
    def img_size(self) -> int | tuple[int, int]:
        """The ``img_size`` of the backbone: stated, or by its arch."""
        backbone = self.cfg.model.backbone.to_dict()
        if (stated := backbone.get('img_size')) is not None:
            return stated
        return parse_arch(backbone.get('arch', DEFAULT_ARCH)).complete().img_size


def read_continued_model(checkpoint: Checkpoint) -> ContinuedModel | None:
    """The complete model in a checkpoint, or None if there is no task that it can be trained for.

    Raises:
        ConfigError: see :func:`~vit_plugin.inference.saved_model.saved_config`.
    """
    model = read_settings(checkpoint).get('model')
    if not (isinstance(model, Mapping) and 'backbone' in model):
        return None
    cfg = saved_config(checkpoint)
    tasks = _find_tasks(cfg)
    classes = list(checkpoint.dataset_meta.get('classes') or ())
    return ContinuedModel(cfg, classes, tasks) if tasks else None


def _find_tasks(cfg: Config) -> tuple[str, ...]:
    """The tasks that the model of a config can be trained for; () if it is not complete."""
    scope = cfg.get('default_scope')

    def class_of(section: str) -> Any:
        """The class of a component, or None."""
        component = cfg.model.get(section)
        if not isinstance(component, Mapping):
            return None
        return look_up_class(component.get('type'), MODELS, scope)

    head, decode_head, backbone = map(class_of, ('bbox_head', 'decode_head', 'backbone'))
    if task := getattr(decode_head, 'task', ''):
        return (task,)
    if getattr(backbone, 'added_classifiers', ()):  # a backbone with queries
        return ('segmentation',) if scope == 'mmseg' else ('instance', 'panoptic')
    if (cfg.model.get('test_cfg') or {}).get('panoptic_on'):
        return ('panoptic',)
    if hasattr(head, 'class_layers'):
        return ('instance' if 'masks' in getattr(head, 'outputs', ()) else 'detection',)
    return ()


def adapt_model(saved: ContinuedModel, listing: Listing) -> dict[str, Any]:
    """The section ``model`` of a complete model, with a head for the new classes.

    If the classes and the kind of output are the same, it is unchanged.

    Raises:
        ConfigError: if the number of bands of the images is not that of the model.
    """
    model, classes = saved.cfg.model.to_dict(), listing.classes
    # MMEngine also reads a preprocessor next to the model.
    model['data_preprocessor'] = model.get('data_preprocessor') or dict(
        saved.cfg.get('data_preprocessor') or {}
    )
    bands = len(model['data_preprocessor'].get('mean') or (0, 0, 0))
    if (listing.bands or 3) != bands:
        taken = 'photographs' if bands == 3 else f'images of {bands} bands'
        raise ConfigError(
            f'--weights: the model takes {taken}, but the images '
            f'have {listing.bands or 3} bands; give others, or --arch for a new model.'
        )
    stuff, panoptic_head = listing.stuff or 0, model.get('panoptic_head') or {}
    is_panoptic, test_cfg = listing.stuff is not None, model.get('test_cfg') or {}
    is_same = saved.classes == list(classes) and panoptic_head.get('num_stuff_classes', 0) == stuff
    if is_same and test_cfg.get('panoptic_on', is_panoptic) == is_panoptic:
        return model
    backbone_predicts = 'num_classes' in model['backbone']  # by its queries
    for section, name in CLASS_COUNT_ARGUMENTS.items():
        if section in model and (backbone_predicts or section != 'backbone'):
            model[section][name] = len(classes)
            # A published DETR has classifier rows without a class; the new classifier has none.
            model[section].pop('unused_rows', None)
            if name == 'num_things_classes':
                counts = dict(num_things_classes=len(classes) - stuff, num_stuff_classes=stuff)
                model[section] |= counts
    # The last weight is that of the class "no object".
    if 'class_weight' in panoptic_head.get('loss_cls', ()):
        weights = panoptic_head['loss_cls']['class_weight']
        panoptic_head['loss_cls']['class_weight'] = [1.0] * len(classes) + weights[-1:]
    if 'panoptic_on' in test_cfg:
        querying = model['backbone'] if backbone_predicts else panoptic_head
        model['test_cfg'] |= dict(
            panoptic_on=is_panoptic,
            instance_on=not is_panoptic,
            max_per_image=min(100, querying.get('num_queries', DEFAULT_QUERIES) * len(classes)),
        )
    return model


def describe_weights(saved: ContinuedModel, classes: Sequence[str], weights: str) -> str:
    """A sentence about which weights are kept."""
    text = f'The model is that of {weights}'
    if saved.classes != list(classes):
        return (
            f'{text}, with {counted(len(classes), "new class")}: the layers of its classes start '
            'untrained, and all else is kept.'
        )
    if classes:
        return f'{text} with its classes, and all of it is kept.'
    return f'{text}, and all of it is kept.'
