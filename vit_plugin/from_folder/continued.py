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


def adapt_model(saved: Config, listing: Listing) -> dict[str, Any]:
    """The section ``model`` of a saved config, with a head for the new classes.

    If the classes are the same, it is unchanged.

    Raises:
        ConfigError: if the number of bands of the images is not that of the model.
    """
    model, classes = saved.model.to_dict(), listing.classes
    bands = len(model['data_preprocessor']['mean'])
    if (listing.bands or 3) != bands:
        taken = 'photographs' if bands == 3 else f'images of {bands} bands'
        raise ConfigError(
            f'--weights: the model takes {taken}, but the images '
            f'have {listing.bands or 3} bands; give others, or --arch for a new model.'
        )
    stuff, panoptic_head = listing.stuff or 0, model.get('panoptic_head', {})
    if saved.classes == list(classes) and panoptic_head.get('num_stuff_classes', 0) == stuff:
        return model
    backbone_has_queries = 'num_queries' in model['backbone']  # then it predicts the classes
    for section, name in CLASS_COUNT_ARGUMENTS.items():
        if section in model and (backbone_has_queries or section != 'backbone'):
            model[section][name] = len(classes)
            # A published DETR has classifier rows without a class; the new classifier has none.
            model[section].pop('unused_rows', None)
        if 'num_stuff_classes' in model.get(section, ()):
            counts = dict(num_things_classes=len(classes) - stuff, num_stuff_classes=stuff)
            model[section] |= counts
    # The last weight is that of the class "no object".
    if 'class_weight' in panoptic_head.get('loss_cls', ()):
        weights = panoptic_head['loss_cls']['class_weight']
        panoptic_head['loss_cls']['class_weight'] = [1.0] * len(classes) + weights[-1:]
    if 'panoptic_on' in model['test_cfg']:
        num_queries = (model['backbone'] if backbone_has_queries else panoptic_head)['num_queries']
        model['test_cfg'] |= dict(
            panoptic_on=listing.stuff is not None,
            instance_on=listing.stuff is None,
            max_per_image=min(100, num_queries * len(classes)),
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
