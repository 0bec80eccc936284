"""Read DINOv2 and DINOv3 in the format of transformers, so that their training can be continued.

:func:`~vit_plugin.weights.published_run.as_run` reads such encoders itself, unless it is called
with ``images=False``. The backbone of a continued training is loaded in that way, so this project
registers the reader.
"""

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.encoder_kinds import ENCODER_KINDS
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_image_model import image_model


def read_dino_encoder(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a DINOv2 or DINOv3 and its classes, if it has any. None for another model.

    Raises:
        ConfigError: if the model is not supported.
    """
    return image_model(published) if published.model_type in ENCODER_KINDS else None
