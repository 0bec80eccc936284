"""A trained model: a checkpoint, its config, its pixels and its classes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.model import ImgDataPreprocessor, revert_sync_batchnorm
from mmengine.registry import MODELS, VISUALIZERS, DefaultScope
from mmengine.visualization import Visualizer
from timm.data import ImageNetInfo, infer_imagenet_subset
from torch import Tensor, nn

from vit_plugin.engine.checks import check_channels, check_checkpoint, check_classes, check_head
from vit_plugin.engine.checks.data import dataset_class
from vit_plugin.engine.config import of_host
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.models.classifier import Classifier, classifier_parts
from vit_plugin.models.loading import find_backbone, load_trained, load_weights
from vit_plugin.models.namesake import compare
from vit_plugin.multimodal import leave_out_multimodal
from vit_plugin.passes import optimize
from vit_plugin.visualization.pictures import PreparedImage
from vit_plugin.weights.conversion import choose_format
from vit_plugin.weights.files import find_weights
from vit_plugin.weights.report import some
from vit_plugin.weights.sources import open_weights
from vit_plugin.weights.training import seen_in_training
from vit_plugin.weights.unpacking import prepared
from vit_plugin.zoo.pixels import data_config_of

from .checkpoint import Checkpoint, open_checkpoint
from .command_line import check_device
from .images import ConfigPixels, TimmPixels, read_image
from .predictions import Prediction

TIMM = 'timm://'
# By a config's default_scope: the task, and what draws its predictions.
TASKS = dict(mmpretrain=('classification', 'UniversalVisualizer'), mmdet=('detection', 'DetLocalVisualizer'),
             mmseg=('segmentation', 'SegLocalVisualizer'))
WEIGHTS_ALONE = ('.npz', '.safetensors')
CLASSIFIER, PRE_LOGITS, SECOND = (f'head.layers.{name}.weight' for name in ('head', 'pre_logits', 'head_dist'))


class TrainedModel:
    """A model in eval mode that is asked about images. Make it by :func:`load`.

    Args:
        model: a classifier, detector or segmentor, or a :class:`~vit_plugin.models.classifier.Classifier` of features.
        cfg: its config. That of a model without one says its ``default_scope`` alone.
        meta: what is known of the data, such as the names of the ``classes``.
        pixels: an image -> a sample of the model's input. Default: the steps of the config's test.

    Attributes:
        classes: the names of the classes, as far as they are known.
        task: ``'classification'``, ``'detection'`` or ``'segmentation'``.
    """

    def __init__(self, model: nn.Module, cfg: Config, meta: Mapping[str, Any],
                 pixels: Callable[..., dict[str, Any]] | None = None) -> None:
        self.model, self.cfg, self.meta = model.eval(), cfg, dict(meta)
        self.classes = list(self.meta.get('classes') or ())
        self.task, self._visualizer = of_host(TASKS, cfg)
        self._pixels = pixels
        self._size = min(find_backbone(model)[1].img_size) if isinstance(pixels, TimmPixels) else None

    def sample(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        """An image as the model's test has it, before it is normalised.

        Args:
            image: a file, or pixels (H, W, 3) in BGR as OpenCV reads them.
            index: its number, for the framework.

        Raises:
            ConfigError: if the file cannot be read, or if the config has no ``test_dataloader``.
        """
        if self._pixels is None:
            with DefaultScope.overwrite_default_scope(self.cfg.default_scope):
                self._pixels = ConfigPixels(self.cfg)
        return self._pixels(image, index)

    def prepare(self, image: str | Path | np.ndarray, size: int | None = None) -> PreparedImage:
        """An image for a picture of what the model sees.

        Args:
            image: see :meth:`sample`.
            size: the shorter side in pixels of the complete image, up to rounding to complete patches. Default: the
                steps of the config's test, or the ``img_size`` of the arch.

        Raises:
            ConfigError: see :meth:`sample`.
        """
        size = size or self._size
        if size is None:
            return PreparedImage.from_batch(self.model, pseudo_collate([self.sample(image)]))
        pixels, stem = read_image(image), find_backbone(self.model)[1].patch_embed
        scale = size / min(pixels.shape[:2])
        height, width = (max(round(side * scale / stem.stride), 1) * stem.stride for side in pixels.shape[:2])
        pixels = mmcv.imresize(pixels, (width, height), interpolation='bicubic', backend='pillow')
        if stem.in_channels == 1:
            pixels = mmcv.bgr2gray(pixels, keepdim=True)
        inputs = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
        return PreparedImage.from_batch(self.model, dict(inputs=[inputs], data_samples=None))

    @torch.no_grad()
    def __call__(self, image: str | Path | np.ndarray, index: int = 0) -> Prediction:
        """What the model finds in an image, see :mod:`vit_plugin.apps.predictions`.

        Args:
            image, index: see :meth:`sample`.

        Raises:
            ConfigError: if the image cannot be read, or if the model has no classes to predict.
        """
        if isinstance(self.model, Classifier):
            raise ConfigError('There are no classes to predict, since these weights have no head with known names of '
                              'classes; give --config with the config of a classifier.')
        found = self.model.test_step(pseudo_collate([self.sample(image, index)]))[0]
        return Prediction.of(found.cpu(), self.classes)

    def features(self, samples: Sequence[dict[str, Any]]) -> np.ndarray:
        """What the head of a classifier gets of images, (N, C) in float32.

        Args:
            samples: of :meth:`sample`.

        Raises:
            ConfigError: if this is no classifier, or see :func:`vectors_of`.
        """
        if self.task != 'classification':
            raise ConfigError(f'A model of {self.task} has no single vector for an image, as a classifier has; '
                              'give the checkpoint of one, or --arch.')
        return vectors_of(self.model, self.model.data_preprocessor(pseudo_collate(samples), False)['inputs'])

    def visualizer(self) -> Visualizer:
        """What draws the predictions: the config's, or the framework's."""
        with DefaultScope.overwrite_default_scope(self.cfg.default_scope):
            cfg = dict(self.cfg.get('visualizer') or dict(type=self._visualizer), name='infer', vis_backends=None)
            visualizer = VISUALIZERS.build(cfg)
        visualizer.dataset_meta = self.meta
        return visualizer

    def optimized(self) -> 'TrainedModel':
        """This model, with the passes for its device unless the config has ``optimize=False``."""
        if self.cfg.get('optimize', True):
            self.model = optimize(self.model)
        return self


def load(checkpoint: str | Path, config: str | None = None, arch: str | None = None, device: str | None = None,
         options: Mapping[str, Any] | None = None, classify: bool = True) -> TrainedModel:
    """Read a trained model. ``vit_plugin.load(checkpoint)('photo.jpg')`` is its prediction.

    Args:
        checkpoint: a checkpoint of a training by MMEngine, or the folder of a run; weights of any format of
            :data:`~vit_plugin.weights.formats.FORMATS` with their ``arch``; or ``timm://NAME``.
        config: the config of the checkpoint. Default: that in the checkpoint.
        arch: the arch of weights without a config, such as ``'B/16'``.
        device: default: a GPU if there is one.
        options: settings to change in the config, by their dotted names, or further arguments of the backbone of
            ``arch``.
        classify: whether the neck and head are asked too. Otherwise weights of the backbone are enough.

    Raises:
        ConfigError: if nothing says what the model is, or if the checkpoint cannot be read, is of another model, lacks
            weights that count or has values that are not finite.
    """
    checkpoint = str(checkpoint)
    if config and arch:
        raise ConfigError('--config and --arch both say what the model is; give one of them.')
    device = device or get_device()
    check_device(device)
    leave_out_multimodal()
    arch = arch or (checkpoint if checkpoint.startswith(TIMM) and not config else None)
    if arch:
        trained = from_arch(arch, checkpoint, options, classify)
    else:
        trained = from_config(open_checkpoint(checkpoint, config, options), only_backbone=not classify)
    trained.model.to(device)
    return trained


def from_config(checkpoint: Checkpoint, only_backbone: bool = False) -> TrainedModel:
    """The model of a checkpoint with a config, see :func:`load`.

    Args:
        checkpoint: the checkpoint, with its config.
        only_backbone: whether weights of another format may leave the neck and head at their initialisation.
    """
    path, content, cfg = checkpoint
    cfg.setdefault('default_scope', 'mmpretrain')
    of_host(TASKS, cfg)
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor')
        model = revert_sync_batchnorm(MODELS.build(dict(cfg.model, data_preprocessor=preprocessor)))
        dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
        kind = dataset_class(dataset, cfg.default_scope) if dataset else None
        meta = {**getattr(kind, 'METAINFO', {}), **dataset.get('metainfo', {})}
    if not only_backbone:
        check_head(model)
    weights_alone = '://' in path or path.endswith(WEIGHTS_ALONE)
    if weights_alone and not dict(model.named_parameters()).keys() <= (weights := find_weights(content)).keys():
        _load_converted(model, path, weights, only_backbone)
    else:
        said = load_trained(model, path, content)
        check_classes(model, said, f'the checkpoint {path!r}')
        meta.update(said)
    return TrainedModel(model, cfg, meta)


def _load_converted(model: nn.Module, path: str, weights: Mapping[str, Tensor], only_backbone: bool) -> None:
    """Load weights of another format into all of a model, or into its backbone."""
    backbone = find_backbone(model)[1]
    report = load_weights(model, weights)
    report.notes.extend(compare(backbone, path).values())
    print_log(f'Loaded {path}\n{report}', 'current')
    counts = backbone.state_dict() if only_backbone else report.untrained
    lost = {name: why for name, why in report.untrained.items() if name in counts}
    if lost:
        raise ConfigError(f'The checkpoint {path!r} is not of the complete model: it has no values for {some(lost)} '
                          f'({next(iter(lost.values()))}); give the checkpoint of its training.')


def from_arch(arch: str, source: str, options: Mapping[str, Any] | None = None, classify: bool = True) -> TrainedModel:
    """The model of weights without a config, see :func:`load`.

    It is a classifier of MMPretrain if the weights have a trained classifier with one of ImageNet's numbers of classes.
    Other heads may be projections, as CLIP's; without one, the model has features alone.
    """
    check_checkpoint(source)
    given = Config(dict(img_size=seen_in_training(source).get('img_size')))
    given.merge_from_dict(dict(options or {}))  # reads the dots in the keys
    parts = classifier_parts(arch, **given.to_dict())
    weights = open_weights(source)
    _, _, steps = choose_format(ready := prepared(weights))
    head = {name: steps[name].make(ready) for name in (CLASSIFIER, PRE_LOGITS, SECOND) if classify and name in steps}
    classes = imagenet_classes(len(head[CLASSIFIER])) if CLASSIFIER in head and head[CLASSIFIER].any() else []
    if classes:
        with needed_by('a classifier'):
            from mmpretrain.models.classifiers import ImageClassifier
        part: dict[str, Any] = dict(type='vit_plugin.ViTClsHead', num_classes=len(classes),
                                    in_channels=parts.in_channels)
        if SECOND in head:
            part['type'], parts.backbone['out_type'] = 'vit_plugin.DistilledViTClsHead', 'raw'
        if PRE_LOGITS in head:
            part['hidden_dim'] = len(head[PRE_LOGITS])
        cfg = dict(backbone=parts.backbone, neck=parts.neck, head=part)
        check_channels(cfg)
        model: nn.Module = ImageClassifier(**{name: one and MODELS.build(one) for name, one in cfg.items()})
    else:
        model = Classifier(parts, num_classes=0)
    backbone, pixels = model.backbone, data_config_of(arch, source)
    grey = backbone.patch_embed.in_channels == 1
    mean, std = ([255 * value for value in pixels[key][:1 if grey else 3]] for key in ('mean', 'std'))
    model.data_preprocessor = ImgDataPreprocessor(mean, std, bgr_to_rgb=not grey)
    compare(backbone, source)
    load_weights(model, weights)
    shape = (backbone.patch_embed.in_channels, *backbone.img_size)
    return TrainedModel(model, Config(dict(default_scope='mmpretrain')), dict(classes=classes),
                        TimmPixels(dict(pixels, input_size=shape)))


def imagenet_classes(count: int) -> list[str]:
    """The names of ImageNet's classes, by their number: 1000, 11821, 21841 or 21843; nothing for others."""
    subset = infer_imagenet_subset(dict(num_classes=count))
    return list(ImageNetInfo(subset).label_descriptions()) if subset else []


@torch.no_grad()
def vectors_of(model: nn.Module, inputs: Tensor) -> np.ndarray:
    """What the head of a classifier gets of normalised images (N, C, H, W): features (N, C') in float32.

    Args:
        model: a classifier, in eval mode.
        inputs: the images.

    Raises:
        ConfigError: if the head gets tokens or maps.
    """
    features = model.forward_features(inputs) if isinstance(model, Classifier) else model.extract_feat(inputs)[-1]
    if features.ndim != 2:
        raise ConfigError(f'The head gets features of shape {tuple(features.shape)}, and one vector for an image is '
                          "wanted: pool them with the neck TokenPooling, or choose the out_type 'cls_token' or "
                          "'avg_featmap'.")
    return features.float().cpu().numpy()
