"""The sections of the page in the browser: their texts and pictures, without Gradio."""

from typing import Any, NamedTuple

import numpy as np

from anyfolder.pixels.images import read_image
from vit_plugin.errors import ConfigError
from vit_plugin.files.untrusted_text import escape_markdown
from vit_plugin.inference import SCORE_THR
from vit_plugin.inference.predictions import draw_prediction
from vit_plugin.inference.prepared_image import PreparedImage
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.classifier import Classifier
from vit_plugin.task import tasks

from ..pictures.figure_files import as_pixels
from ..pictures.pictures import PER_IMAGE, supported_pictures

# Limit for an upload. The shorter side is scaled to a fixed size, so the number of patches grows
# with this ratio, and the number of attention weights with its square.
MAX_ASPECT_RATIO = 10
MAX_PAGE_CLASSES = 8  # classes that the page names
FOUND = 'found'  # the section with the prediction drawn over the picture
# The title and the caption of each section. The keys after the first are those of PER_IMAGE.
PAGE_SECTIONS = {
    FOUND: ('What it finds', 'Boxes, masks or a map of the classes, each in its color.'),
    'attention': (
        'Attention',
        'Each panel is one head of the chosen block. Bright patches are those that the class '
        'token, or the mean of all patches, attends to most. A dark panel attends to all alike.',
    ),
    'rollout': (
        'Attention rollout',
        'How much of each patch has reached the class token, or the mean of the patches, after '
        'the chosen block.',
    ),
    'features': (
        'Features as colors',
        'Patches of one color have similar features: three principal components as red, green '
        'and blue.',
    ),
    'cam': (
        'Evidence for the most probable class',
        'Bright patches raise the score of that class (Grad-CAM).',
    ),
}


class PageAnswer(NamedTuple):
    """The prediction for a picture, and the pictures of what the model sees."""

    text: str  # the prediction in words, or why there is none
    scores: dict[str, float]  # most probable classes; empty for other tasks
    pictures: dict[str, np.ndarray | str]  # by section: pixels (H, W, 3), or why there are none


def describe_model(trained: TrainedModel) -> str:
    """Describe the model in Markdown, before there is a picture."""
    if not has_answer(trained):
        return 'The page shows what this model sees in a picture.'
    text = f'This model {tasks()[trained.task].ability}, and the page shows what it sees there.'
    if not trained.classes:
        return text
    names = ', '.join(map(escape_markdown, trained.classes[:MAX_PAGE_CLASSES]))
    others = len(trained.classes) - MAX_PAGE_CLASSES
    return f'{text} Its classes: {names}{f" and {others:,} more" if others > 0 else ""}.'


def has_answer(trained: TrainedModel) -> bool:
    """True if a model has a prediction, and its preprocessing is known."""
    return trained.has_pixels and not isinstance(trained.model, Classifier)


def answer_picture(
    trained: TrainedModel,
    path: str,
    block: int = -1,
    score_thr: float = SCORE_THR,
    size: int | None = None,
) -> PageAnswer:
    """Predict an image file, and draw a picture for each section.

    Args:
        trained: the model.
        path: the file.
        block: the block for attention and rollout, from 1; -1 is the last.
        score_thr: lowest score of a box.
        size: the shorter side in pixels of the image in the pictures, see
            :meth:`~.trained_model.TrainedModel.prepare`.

    Raises:
        ConfigError: if the file cannot be read, or is too elongated for attention weights.
    """
    # The page shows the upload itself, so the pictures leave it out.
    image = trained.prepare(path, size)._replace(next_to_photograph=False)
    short, long = sorted(image.input_size)
    if long > MAX_ASPECT_RATIO * short:
        raise ConfigError(
            f'One side of the picture is more than {MAX_ASPECT_RATIO} times the other; crop it.'
        )
    if not has_answer(trained):
        return PageAnswer(text='', scores={}, pictures=draw_all(trained, image, block))
    prediction = trained(path)
    label = int(prediction.labels[0]) if trained.prediction_class.lists_classes else None
    pictures = draw_all(trained, image, block, label)
    rows = prediction.rows(score_thr)
    if trained.prediction_class.lists_classes:
        return PageAnswer(
            text='', scores={row['class']: row['score'] for row in rows}, pictures=pictures
        )
    drawn = draw_prediction(read_image(path), prediction, score_thr)[..., ::-1]  # BGR to RGB
    return PageAnswer(prediction.text(score_thr), scores={}, pictures={FOUND: drawn, **pictures})


def draw_all(
    trained: TrainedModel, image: PreparedImage, block: int = -1, label: int | None = None
) -> dict[str, np.ndarray | str]:
    """All pictures that a model supports, by name.

    Args:
        trained: the model.
        image: the image.
        block: the block for attention and rollout, from 1; -1 is the last.
        label: the class for class activation. Default: the most probable.

    Returns:
        For each picture the pixels (H, W, 3), or a sentence why there is none for this image.
    """
    options: dict[str, dict[str, Any]] = dict(
        attention=dict(blocks=[block]),
        rollout=dict(blocks=[block]),
        cam=dict(classes=trained.classes, label=label),
    )
    pictures: dict[str, np.ndarray | str] = {}
    for name in supported_pictures(trained.model):
        try:
            pictures[name] = as_pixels(
                PER_IMAGE[name](trained.model, image, **options.get(name, {}))
            )
        except ConfigError as error:
            pictures[name] = str(error)
    return pictures
