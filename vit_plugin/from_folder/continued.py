"""Adapt a complete model to new data: which weights are kept."""

from collections.abc import Sequence
from typing import Any

from mmengine.config import Config

from anyfolder.readers.listing import Listing
from anyfolder.wording import counted
from vit_plugin.errors import ConfigError

# Sections of a model that state its number of classes, and their arguments.
CLASS_COUNT_ARGUMENTS = {
    'bbox_head': 'num_classes',
    'backbone': 'num_classes',
    'decode_head': 'num_classes',
    'panoptic_head': 'num_things_classes',
    'panoptic_fusion_head': 'num_things_classes',
}


def adapt_model(saved: Config, listing: Listing) -> dict[str, Any]:
    """The section ``model`` of its config, with a head for the new classes.

    Raises:
        ConfigError: if the images have another number of bands than the model takes.
    """
    model, classes = saved.model.to_dict(), listing.classes
    bands = len(model['data_preprocessor']['mean'])
    if (listing.bands or 3) != bands:
        taken = 'photographs' if bands == 3 else f'images of {bands} bands'
        raise ConfigError(
            f'--weights: the model takes {taken}, but the images '
            f'have {listing.bands or 3} bands; give others, or --arch for a new model.'
        )
    stuff, head = listing.stuff or 0, model.get('panoptic_head', {})
    if saved.classes == list(classes) and head.get('num_stuff_classes', 0) == stuff:
        return model
    queries = 'num_queries' in model['backbone']  # its backbone predicts the classes
    for part, name in CLASS_COUNT_ARGUMENTS.items():
        if part in model and (queries or part != 'backbone'):
            model[part][name] = len(classes)
            model[part].pop('unused_rows', None)
        if 'num_stuff_classes' in model.get(part, ()):
            model[part] |= dict(num_things_classes=len(classes) - stuff, num_stuff_classes=stuff)
    # The last weight is that of the class "no object".
    if 'class_weight' in head.get('loss_cls', ()):
        weights = head['loss_cls']['class_weight']
        head['loss_cls']['class_weight'] = [1.0] * len(classes) + weights[-1:]
    if 'panoptic_on' in model['test_cfg']:
        number = (model['backbone'] if queries else head)['num_queries']
        model['test_cfg'] |= dict(
            panoptic_on=listing.stuff is not None,
            instance_on=listing.stuff is None,
            max_per_image=min(100, number * len(classes)),
        )
    return model


def describe_weights(saved: Config, classes: Sequence[str], weights: str) -> str:
    """A sentence about which weights are kept."""
    new = saved.classes != list(classes)
    return f'The model is that of {weights}' + (
        f', with {counted(len(classes), "new class")}: the layers of its classes start untrained, '
        'and all else is kept.'
        if new
        else ' with its classes, and all of it is kept.'
        if classes
        else ', and all of it is kept.'
    )
