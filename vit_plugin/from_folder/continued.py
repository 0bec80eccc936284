"""Adapt a complete trained model to the classes of a new data set.

A complete model has a backbone, a neck and a head. Only layers whose size depends on the classes
start untrained.
"""

from collections.abc import Sequence
from typing import Any

from mmengine.config import Config

from anyfolder.readers.listing import Listing
from anyfolder.wording import counted
from vit_plugin.errors import ConfigError

# Section of a model -> its argument for the number of classes.
CLASS_COUNT_ARGUMENTS = {
    'bbox_head': 'num_classes',
    'backbone': 'num_classes',
    'decode_head': 'num_classes',
    'panoptic_head': 'num_things_classes',
    'panoptic_fusion_head': 'num_things_classes',
}
DEFAULT_QUERIES = 100  # default of `num_queries` in an EoMT, a PMT and a Mask2Former


def adapt_model(saved: Config, listing: Listing) -> dict[str, Any]:
    """The section ``model`` of a saved config, with a head for the new classes.

    If the classes and the kind of output are the same, it is unchanged.

    Raises:
        ConfigError: if the number of bands of the images is not that of the model.
    """
    model, classes = saved.model.to_dict(), listing.classes
    # MMEngine also reads a preprocessor next to the model.
    model['data_preprocessor'] = model.get('data_preprocessor') or dict(
        saved.get('data_preprocessor') or {}
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


def describe_weights(saved: Config, classes: Sequence[str], weights: str) -> str:
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
