"""DINOv2 and DINOv3 in the format of transformers, to be continued with this objective."""

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.encoder_kinds import ENCODER_KINDS
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_image_model import image_model


def dino(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a DINO and its classes, if it has any. None if it is another model.

    Raises:
        ConfigError: if the model is not supported.
    """
    return image_model(published) if published.kind in ENCODER_KINDS else None
