"""Compare an exported file with its checkpoint end to end, on images of several sizes."""

from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
from PIL import Image

from anyfolder.pixels.images import read_image
from vit_plugin.errors import ConfigError
from vit_plugin.inference.trained_model import TrainedModel

from .exported_model import ExportedModel
from .input_sizes import padding_of

# Width and height: landscape, portrait, square, tiny, odd and long, and one rotated by EXIF.
PHOTOGRAPH_SIZES = ((320, 200), (200, 320), (240, 240), (24, 18), (331, 79), (320, 200))
# Largest accepted difference of a class score, or share of a map's pixels. Rounding causes much
# less. Boxes are not checked, since rounding chooses between those with equal scores.
MAX_PREDICTION_DIFFERENCE = 0.01
ORIENTATION = 0x0112  # EXIF's tag
QUARTER_TURN = 6  # its value for an image to turn by a quarter before it is shown


def write_photographs(folder: Path, channels: int = 3) -> list[Path]:
    """Write images of discs on a smooth background; the last one is stored rotated.

    If ``channels`` is neither 1 nor 3, they are arrays of bands.
    """
    rng = np.random.default_rng(0)
    paths = []
    for number, (width, height) in enumerate(PHOTOGRAPH_SIZES):
        coarse = rng.integers(60, 200, (4, 5, 3), np.uint8)
        image = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        for _ in range(6):
            x, y = int(rng.integers(width)), int(rng.integers(height))
            cv2.circle(
                image,
                (x, y),
                radius=min(width, height) // 8,
                color=rng.integers(0, 256, 3).tolist(),
                thickness=cv2.FILLED,
            )
        if channels not in (1, 3):
            paths.append(folder / f'{number}.npy')
            np.save(paths[-1], image.take(range(channels), axis=2, mode='wrap'))
            continue
        exif = Image.Exif()
        if number == len(PHOTOGRAPH_SIZES) - 1:
            exif[ORIENTATION] = QUARTER_TURN
        paths.append(folder / f'{number}.jpg')
        Image.fromarray(image).save(paths[-1], exif=exif, quality=95)
    return paths


def compare_photographs(trained: TrainedModel, file: Path, must_agree: bool = True) -> str:
    """Run the file and the model on the same photographs, except those smaller than one patch.

    Args:
        trained: the model.
        file: the file.
        must_agree: whether predictions other than boxes must agree up to
            :data:`MAX_PREDICTION_DIFFERENCE`.

    Returns:
        A sentence with the largest difference of pixels, without padding, and of predictions, see
        :meth:`~vit_plugin.inference.predictions.Prediction.difference_from`.

    Raises:
        ConfigError: if the predictions must agree and do not.
    """
    model, padding = ExportedModel(file), padding_of(trained.model)
    patch = model.facts.get('patch', 1)
    predicts_boxes = trained.prediction_class.has_threshold  # only boxes have one
    pixel_differences, prediction_differences = [], []
    with TemporaryDirectory() as folder:
        for path in write_photographs(Path(folder), model.channels):
            actual = model.apply_pipeline(read_image(path)).pixels
            expected = trained.sample(str(path))['inputs'].numpy()
            expected = expected.transpose(1, 2, 0).astype(np.float32)
            height, width = expected.shape[:2]
            if min(padding.padded_size((height, width))) < patch:
                continue  # a model of small images rejects the long one
            actual = actual.reshape(*actual.shape[:2], -1)[:height, :width]  # without padding
            same_shape = actual.shape == expected.shape
            pixel_differences.append(float(np.abs(actual - expected).max()) if same_shape else 255)
            if model.outputs_predictions:
                prediction = model(read_image(path))
                prediction_differences.append(prediction.difference_from(trained(str(path))))
    worst = max(prediction_differences, default=0.0)
    sentence = (
        f'on {len(pixel_differences)} photographs of several shapes, its pixels differ from those '
        f'of the pipeline by up to {max(pixel_differences):.3g} of 255, and its answers by up to '
        f'{worst:.2%}'
    )
    if must_agree and worst > MAX_PREDICTION_DIFFERENCE and not predicts_boxes:
        raise ConfigError(
            f'The file does not match the checkpoint: {sentence}; nothing was written. Give '
            '--img-size, if answers of another size will do.'
        )
    return f'\n{sentence[0].upper()}{sentence[1:]}'
