"""Register the recipes as models of MMPretrain, from the model index that ``mim`` reads too."""

import mmengine

from vit_plugin.errors import needed_by
from vit_plugin.files.shipped import shipped
from vit_plugin.importable import make_importable


def register_models() -> None:
    """Register the recipes in MMPretrain, for the rest of the process.

    Afterwards, ``list_models``, ``get_model``, ``inference_model`` and the inferencers of
    MMPretrain know the recipes by name. A second call changes nothing.

    Raises:
        MissingExtraError: if MMPretrain is not installed.
    """
    with needed_by('register_models'):
        make_importable()
        from mmpretrain.apis.model import ModelHub
    index = shipped('model-index.yml')
    for path in mmengine.load(index)['Import']:
        first = mmengine.load(index.parent / path)['Models'][0]['Name']
        # An index is registered as a whole, so one name shows whether it is.
        if not ModelHub.has(first):
            ModelHub.register_model_index(index.parent / path, config_prefix=index.parent)
