"""The frozen teacher of a Distiller: where it comes from, and how it gets the student's images."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from mmengine.logging import print_log
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from typing_extensions import Required, TypedDict

import vit_plugin
from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import Size, Typed
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.weights.hub import timm_name
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.zoo.data_config import data_config_of
from vit_plugin.zoo.feature_maps import build_timm

from .compared_outputs import Outputs, OutputsOf


class TeacherCfg(TypedDict, total=False):
    """The config of a teacher.

    Attributes:
        source: ``timm://NAME``, ``hf://NAME``, a checkpoint, the folder of a run, or the config of
            a model with its weights in ``init_cfg``.
        arch, config: the model of a checkpoint that does not state it, see
            :func:`vit_plugin.load`.
        img_size: the size that images are resized to in pixels, (H, W) or the side of a square.
            Default: that of the teacher's training, or that of the student's images if unknown.
        dtype: the precision of the teacher. Default: float32.
    """

    source: Required[str | Typed]
    arch: str | None
    config: str | None
    img_size: Size | None
    dtype: Literal['float64', 'float32', 'bfloat16', 'float16']


class Pixels(NamedTuple):
    """The normalization of a model's images.

    Attributes:
        mean, std: mean and standard deviation of each channel, of values from 0 to 255. None if
            the model states none. Such a teacher gets the student's images unchanged.
        rgb: whether three channels are in RGB order. Images are read as BGR.
    """

    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    rgb: bool = True

    @classmethod
    def of_model(cls, model: nn.Module) -> 'Pixels':
        """The normalization in a model's ``data_preprocessor``."""
        preprocessor = getattr(model, 'data_preprocessor', None)
        mean, std = (getattr(preprocessor, name, None) for name in ('mean', 'std'))
        # MMPretrain's preprocessors have the first attribute, MMEngine's the second.
        rgb = getattr(preprocessor, 'to_rgb', getattr(preprocessor, '_channel_conversion', True))
        if mean is None or std is None:
            return cls(None, None, rgb)
        return cls(tuple(mean.flatten().tolist()), tuple(std.flatten().tolist()), rgb)


class Teacher:
    """A model in eval mode without gradients.

    It is not an ``nn.Module``, so that a run does not save, train or wrap it.

    Args:
        cfg: a :class:`TeacherCfg`, its ``source`` alone, or the config of a model.

    Attributes:
        name: the source of the model, or its type if the source is a config.
        model: the model.
        pixels: its normalization.
        size: height and width that images are resized to in pixels, or () if they are not.
        module: the module that computes the outputs. A run shards and compiles it like the student.
        fingerprint: SHA-256 of the weights. A run resumes only with the same weights.

    Raises:
        ConfigError: if the model cannot be found, read or built, or is stated twice.
    """

    def __init__(self, cfg: str | TeacherCfg | Typed) -> None:
        options: Any = (
            dict(cfg) if isinstance(cfg, Mapping) and 'source' in cfg else dict(source=cfg)
        )
        source = options['source']
        states_model = bool(options.get('arch') or options.get('config'))
        if isinstance(source, Mapping) and states_model:
            raise ConfigError(
                'Distiller: the source of teacher is the config of a model already; leave its arch '
                'and config out.'
            )
        if isinstance(source, Mapping):
            self.name, loaded = str(source['type']), _build_model(source)
        elif (name := timm_name(source)) and not states_model:
            self.name, loaded = source, _load_timm(source, name)
        else:
            self.name = source
            loaded = _load_run(source, options.get('arch'), options.get('config'))
        self.model, self.pixels, size = loaded
        size = options.get('img_size') or size
        self.size: tuple[int, ...] = (size, size) if isinstance(size, int) else tuple(size or ())
        self.fingerprint = _fingerprint(self.model)
        self.dtype = getattr(torch, options.get('dtype', 'float32'))
        self.module = OutputsOf(self.model).requires_grad_(False).eval().to(self.dtype)
        print_log(f'The teacher is {self.name}, SHA-256 {self.fingerprint[:16]}.', 'current')

    @torch.no_grad()
    def __call__(self, images: Tensor, pixels: Pixels) -> Outputs:
        """The outputs, in the dtype of the student's images. ``features`` are left out.

        Args:
            images: the images (B, C, H, W), normalized for the student.
            pixels: the student's normalization.
        """
        parameter = next(self.model.parameters())
        # A sharded teacher (`DTensor`) is on its device already.
        if parameter.device != images.device and not isinstance(parameter, DTensor):
            self.model.to(images.device)
        with torch.autocast(images.device.type, enabled=False):
            outputs = self.module(self.preprocess(images, pixels).to(self.dtype))
        return Outputs(
            (), *(output if output is None else output.to(images.dtype) for output in outputs[1:])
        )

    def preprocess(self, images: Tensor, pixels: Pixels) -> Tensor:
        """Convert a student's images to the teacher's normalization, order of channels and size."""
        if self.pixels.mean and self.pixels != pixels:

            def per_channel(numbers: tuple[float, ...] | None) -> Tensor:
                """Numbers as a tensor (C, 1, 1); 1 if the student has no normalization."""
                return images.new_tensor(numbers or (1.0,)).view(-1, 1, 1)

            images = images * per_channel(pixels.std)
            images = images + per_channel(pixels.mean) if pixels.mean else images
            images = images.flip(1) if self.pixels.rgb != pixels.rgb else images
            images = (images - per_channel(self.pixels.mean)) / per_channel(self.pixels.std)
        if self.size not in ((), tuple(images.shape[2:])):
            images = F.interpolate(images, self.size, mode='bilinear', antialias=True)
        return images

    def channels(self, in_channels: int, size: Sequence[int]) -> dict[str, int | None]:
        """The channels of each output, or None for those that the teacher lacks.

        Args:
            in_channels: channels of the student's images.
            size: their height and width in pixels.

        Raises:
            ConfigError: if the teacher rejects such an image.
        """
        try:
            outputs = self(torch.zeros(1, in_channels, *size), Pixels.of_model(self.model))
        except (RuntimeError, ValueError, AssertionError) as error:
            raise ConfigError(
                f'Distiller: the teacher {self.name} does not compute images of {in_channels} '
                f'channels and {size[0]} x {size[1]} pixels ({first_line(error)}); give '
                'teacher=dict(source=..., img_size=...), or another teacher.'
            ) from error
        return {
            name: output.shape[1] if isinstance(output, Tensor) else None
            for name, output in outputs._asdict().items()
        }

    def __deepcopy__(self, memo: dict) -> 'Teacher':
        return self  # it never changes, so EMA copies of the student share it


class LoadedTeacher(NamedTuple):
    """A model with its weights.

    Attributes:
        model: the model.
        pixels: its normalization.
        size: the size of its images in pixels, (H, W) or the side of a square. None if unknown.
    """

    model: nn.Module
    pixels: Pixels
    size: Size | None


def _load_timm(source: str, name: str) -> LoadedTeacher:
    """timm's own model with timm's weights."""
    weights, data_config = open_checkpoint(source).weights, data_config_of(source, source)
    model = build_timm(name, 'Distiller: teacher')
    with as_config_error(f'Distiller: teacher {source}', (RuntimeError,)):
        model.load_state_dict(weights)
    mean, std = (tuple(255 * value for value in data_config[key]) for key in ('mean', 'std'))
    return LoadedTeacher(model, Pixels(mean, std), model.pretrained_cfg['input_size'][1:])


def _build_model(cfg: Mapping[str, Any]) -> LoadedTeacher:
    """A model from its config, whose ``init_cfg`` has its weights."""
    with as_config_error('Distiller: teacher'):
        model = MODELS.build(dict(cfg))
    if hasattr(model, 'init_weights'):
        model.init_weights()
    return LoadedTeacher(_inner_model(model), Pixels.of_model(model), _native_size(model))


def _load_run(source: str, arch: str | None, config: str | None) -> LoadedTeacher:
    """A model from a checkpoint or the folder of a run.

    It is loaded through the package's ``load``, since a project may not import
    ``vit_plugin.inference``, which is a higher layer.
    """
    # With its own config, a checkpoint is taken as it is, also a backbone without a head.
    classify = bool(arch or config)
    trained = vit_plugin.load(source, config, arch, device='cpu', classify=classify)
    model = trained.model
    return LoadedTeacher(_inner_model(model), Pixels.of_model(model), _native_size(model))


def _inner_model(model: nn.Module) -> nn.Module:
    """The model of timm within MMPretrain's ``TimmClassifier``. Any other model is returned."""
    inner = getattr(model, 'model', None)
    return inner if hasattr(inner, 'forward_head') and not hasattr(model, 'channels') else model


def _native_size(model: nn.Module) -> Size | None:
    """The image size of a backbone, or of a model's backbone, if it has a fixed one."""
    return getattr(getattr(model, 'backbone', model), 'img_size', None)


def _fingerprint(model: nn.Module) -> str:
    """SHA-256 of the names and the bytes of all weights."""
    digest = sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
