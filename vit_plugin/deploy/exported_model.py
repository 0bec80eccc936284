"""A file of ``vit-plugin export``, run by onnxruntime or OpenVINO: without torch or a framework."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import Field
from typing_extensions import NotRequired

from anyfolder.bounded import json_in
from anyfolder.limits import LimitError
from anyfolder.pixels.bands import check_bands
from anyfolder.pixels.images import read_image
from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OpenDict, PositiveInt
from vit_plugin.errors import ConfigError, naming, rejecting
from vit_plugin.inference import MIN_SLICE_SIDE
from vit_plugin.inference.predictions import Prediction, prediction_classes
from vit_plugin.inference.unusual_sizes import announce_large_image

from .pixel_steps import PixelStep, PlacedPixels, Sides, apply_steps, size_after
from .runtimes import METADATA_KEY, Runtime, open_exported

USUAL_SIDE = 256  # image side in pixels to try the steps with, for a graph that takes any size


class ExportFacts(OpenDict):
    """The metadata that :func:`~vit_plugin.deploy.export_facts.facts_of` writes.

    Attributes:
        classes: the class names.
        multi_label: whether a classifier's scores are independent (sigmoid instead of softmax).
        rgb: whether the network takes RGB instead of BGR.
        steps: the test pipeline.
        patch: stride of the stem; images must not be smaller.
        slices: side of the slices that a detector was trained for, in pixels.
        usual: height and width of the training images.
    """

    classes: list[str]
    multi_label: bool
    rgb: bool
    steps: list[PixelStep]
    patch: NotRequired[PositiveInt]
    slices: NotRequired[Annotated[int, Field(ge=MIN_SLICE_SIDE)] | None]
    usual: NotRequired[Sides | None]


class ExportedModel:
    """An exported model of any task.

    Args:
        path: the file.
        runtime: the runtime. Default: by the suffix, see
            :func:`~vit_plugin.deploy.runtimes.open_exported`.

    Raises:
        ConfigError: if the file cannot be run, has no metadata about its outputs, or does not take
            images.
        MissingExtraError: if the runtime is not installed.
    """

    def __init__(self, path: str | Path, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or open_exported(path)
        try:
            self.facts: dict[str, Any] = json_in(
                self.runtime.metadata.get(METADATA_KEY, '{}'), path
            )
        except LimitError:
            raise
        except ConfigError:  # not JSON, which is reported below
            self.facts = {}
        if not fits(ExportFacts, self.facts):
            raise ConfigError(
                f'{str(path)!r} does not say what its inputs and outputs are; write it with '
                'vit-plugin export of this version.'
            )
        self.classes: list[str] = self.facts['classes']
        self.slices: int | None = self.facts.get('slices')
        self.inputs = [*self.runtime.inputs]
        with rejecting(f'{str(path)!r} takes no images of known channels', 'export it again'):
            batch, channels, height, width = next(iter(self.runtime.inputs.values()))
            self.channels = int(channels)
        self.takes_one = batch == 1  # whether a call takes a single image
        self.size = height, width  # numbers, or names of dynamic dimensions
        with naming(str(path)):
            self._check_steps(str(path))
        # Outputs of other files are features, or become segments by the framework's own code.
        self.outputs_predictions = any(
            prediction.output in self.runtime.outputs for prediction in prediction_classes()
        )

    def _check_steps(self, path: str) -> None:
        """Check that the pipeline ends in the size that the graph takes, before any image is run.

        Raises:
            ConfigError: if its steps are invalid, or end in another size.
        """
        # Begin with an image of the graph's own size, since a pipeline may keep sizes.
        height, width = (side if isinstance(side, int) else USUAL_SIDE for side in self.size)
        with rejecting(f'{path!r} has a pipeline that cannot be run', 'export it again'):
            for step in self.facts['steps']:
                width, height = size_after(step, width, height)
        taken_height, taken_width = (
            side if isinstance(side, int) else final  # a dynamic dimension takes any side
            for side, final in zip(self.size, (height, width), strict=True)
        )
        if (height, width) != (taken_height, taken_width):
            raise ConfigError(
                f'{path!r} has a pipeline that makes images of {width:,} x {height:,} pixels, '
                f'but its graph takes {taken_width:,} x {taken_height:,}; export it again.'
            )

    def __call__(self, image: np.ndarray) -> Prediction:
        """The prediction for the pixels (H, W, 3) of an image, in BGR."""
        return self.predict([image])[0]

    def predict(self, images: Sequence[np.ndarray], names: Sequence[str] = ()) -> list[Prediction]:
        """Predictions for several images, in one call if sizes agree and the file allows it.

        ``names`` are for messages.

        Raises:
            ConfigError: if the outputs are features or still have to become segments, if they do
                not fit together or are not of these images, or if the file cannot be run on an
                image, such as one that is too small.
        """
        fitted = [self.apply_pipeline(image) for image in images]
        inputs = [
            (self.channels_of(placed.pixels), np.array(placed.unpadded_size)) for placed in fitted
        ]
        for i, (pixels, _) in enumerate(inputs):
            name = names[i] if names else ''
            announce_large_image(pixels.shape[1:], self.facts.get('usual'), name)
        in_one_call = len({pixels.shape for pixels, _ in inputs}) == 1 and not self.takes_one
        batches = [inputs] if in_one_call else [[image_inputs] for image_inputs in inputs]
        outputs: list[dict[str, np.ndarray]] = []
        for batch in batches:
            stacked = map(np.stack, zip(*batch, strict=True))
            # self.inputs has no sizes if the file does not take them.
            named_inputs = dict(zip(self.inputs, stacked, strict=False))
            height, width = named_inputs[self.inputs[0]].shape[2:]
            with rejecting(
                f'The file cannot be run on an image of {width} x {height} pixels',
                'give a larger image, or export with --img-size',
            ):
                arrays = self.runtime(named_inputs)
            if any(np.shape(array)[:1] != (len(batch),) for array in arrays):
                shapes = ', '.join(str(np.shape(array)) for array in arrays)
                raise ConfigError(
                    f'The file has outputs of the shapes {shapes} for {len(batch)} images, where '
                    'the first number must be that of the images; export it again.'
                )
            outputs += [
                dict(zip(self.runtime.outputs, image_outputs, strict=True))
                for image_outputs in zip(*arrays, strict=True)
            ]
        return [self._read_outputs(*row) for row in zip(outputs, images, fitted, strict=True)]

    def apply_pipeline(self, image: np.ndarray) -> PlacedPixels:
        """Apply the steps of the pipeline to an image (H, W, 3) in BGR, or of bands.

        Raises:
            ConfigError: if the number of bands is not that of the file, if a step cannot be
                applied, or if the image becomes smaller than one patch, for which a graph would
                return garbage.
        """
        image = read_image(image)
        if self.channels == 1 and image.shape[2] == 3:
            image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        check_bands(image, self.channels)
        with rejecting('The file has a pipeline that cannot be run', 'export it again'):
            placed = apply_steps(self.facts['steps'], image)
        patch = self.facts.get('patch', 1)
        height, width = placed.pixels.shape[:2]
        if min(height, width) < patch:
            raise ConfigError(
                f'The file cannot be run on an image of {width} x {height} pixels, which is '
                f'smaller than one patch of {patch} x {patch}; give a larger image, or export with '
                '--img-size.'
            )
        return placed

    def channels_of(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels (H, W, C) or (H, W) in the channels of the file, (C, H, W) in float32."""
        pixels = pixels.reshape(*pixels.shape[:2], self.channels)
        if self.facts['rgb']:
            pixels = pixels[..., ::-1]
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32)

    def _read_outputs(
        self, outputs: dict[str, np.ndarray], image: np.ndarray, placed: PlacedPixels
    ) -> Prediction:
        """The prediction in the outputs of one image."""
        for prediction_class in prediction_classes():
            with rejecting('The outputs of the file do not fit together', 'export it again'):
                prediction = prediction_class.of_outputs(
                    outputs, image.shape[:2], placed, self.facts
                )
            if prediction is not None:
                return prediction
        if 'features' in outputs:
            raise ConfigError(
                'The file gives features of an image and no classes, since its model has no head; '
                'run it by the runtime, or the checkpoint by vit-plugin embed.'
            )
        raise ConfigError(
            f'The outputs {", ".join(outputs)} become segments outside of the file, by the '
            "framework's own code; run the checkpoint."
        )
