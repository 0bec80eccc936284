"""A trained model to ask about images, from its config or from its arch alone."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import MODELS
from timm.data import ImageNetInfo, infer_imagenet_subset
from torch import Tensor, nn

from vit_plugin.engine.checks import check_channels, check_checkpoint
from vit_plugin.engine.config import read_config
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.models import load_weights
from vit_plugin.visualization.pictures import PreparedImage
from vit_plugin.weights.conversion import choose_format
from vit_plugin.weights.sources import open_weights
from vit_plugin.weights.unpacking import prepared
from vit_plugin.zoo.listing import config_of

from .command_line import add_cfg_options, at_least, check_device
from .inference import Pretrained, build_pipeline, load_model, prepare_at_size, prepare_in_pipeline

TIMM = 'timm://'
CLASSIFIER, PRE_LOGITS, SECOND = (f'head.layers.{name}.weight' for name in ('head', 'pre_logits', 'head_dist'))


class Subject(NamedTuple):
    """A model, and how it is asked.

    Attributes:
        model: the model, in eval mode on its device.
        classes: the names of its classes, if they are known.
        see: gives an image file as the model gets it.
    """
    model: nn.Module
    classes: Sequence[str]
    see: Callable[[str], PreparedImage]


def add_subject_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what the model is, but not its checkpoint."""
    parser.add_argument('--config', help='config of the checkpoint')
    parser.add_argument('--arch', help='arch of the checkpoint, such as B/16, in place of a config; default for '
                                       'timm://NAME: the same')
    parser.add_argument('--size', type=at_least(1), help="shorter side of the images in pixels; default: the config's "
                                                         'test pipeline, or the img_size of the arch')
    parser.add_argument('--device', default=get_device(), help='default: %(default)s')
    add_cfg_options(parser)


def read_subject(args: argparse.Namespace, classify: bool) -> Subject:
    """The model of a command line with ``checkpoint`` and the flags of :func:`add_subject_arguments`.

    Args:
        args: the command line.
        classify: whether the head is asked too. Otherwise weights of the backbone are enough. Without a config, the
            model is a classifier if the checkpoint has a classifier with known names of classes.

    Raises:
        ConfigError: if it is not said what the model is, or said twice, or if the checkpoint is of another one.
    """
    if args.config and args.arch:
        raise ConfigError('--config and --arch both say what the model is; give one of them.')
    arch = args.arch or (args.checkpoint if args.checkpoint.startswith(TIMM) else '')
    if not args.config and not arch:
        raise ConfigError('Give --config with the config of the checkpoint, or --arch with its arch, such as B/16.')
    check_device(args.device)
    if args.config:
        cfg = read_config(args.config, args.cfg_options)
        check_checkpoint(args.checkpoint)
        check_channels(cfg.model)
        model, meta = load_model(cfg, args.checkpoint, args.device, only_backbone=not classify)
        see = partial(prepare_at_size, model, size=args.size) if args.size else partial(
            prepare_in_pipeline, model, build_pipeline(cfg))
        return Subject(model, list(meta.get('classes') or ()), see)
    check_checkpoint(args.checkpoint)
    options = Config()
    options.merge_from_dict(args.cfg_options or {})  # reads the dots in the keys
    model = Pretrained(arch, args.checkpoint, **options.to_dict())
    classes: list[str] = []
    if classify:
        model, classes = with_classifier(model, arch, args.checkpoint, options.to_dict())
    model.to(args.device)
    return Subject(model, classes, partial(prepare_at_size, model, size=args.size or min(model.backbone.img_size)))


def with_classifier(model: Pretrained, arch: str, checkpoint: str,
                    options: dict[str, Any]) -> tuple[nn.Module, list[str]]:
    """MMPretrain's classifier with the head of a checkpoint, and the names of its classes.

    Args:
        model: the backbone with its pixels. It is what is returned, with no names, if the checkpoint has no classifier
            that was trained, or one whose number of outputs is none of ImageNet's numbers of classes. Such a
            head may be a projection, as CLIP's.
        arch, checkpoint, options: see :class:`~vit_plugin.apps.inference.Pretrained`.
    """
    _, _, steps = choose_format(weights := prepared(open_weights(checkpoint)))
    head: dict[str, Tensor] = {name: steps[name].make(weights) for name in (CLASSIFIER, PRE_LOGITS, SECOND)
                               if name in steps}
    classes = imagenet_classes(len(head[CLASSIFIER])) if CLASSIFIER in head and head[CLASSIFIER].any() else []
    if not classes:
        return model, []
    with needed_by('a classifier'):
        from mmpretrain.models.classifiers import ImageClassifier
    parts = config_of(arch.removeprefix(TIMM)) if arch.startswith(TIMM) else dict(backbone={})
    backbone = dict(type='vit_plugin.VisionTransformer', arch=arch, **options)
    if SECOND in head or 'neck' in parts:
        backbone['out_type'] = 'raw' if SECOND in head else parts['backbone']['out_type']
    part = dict(type='vit_plugin.DistilledViTClsHead' if SECOND in head else 'vit_plugin.ViTClsHead',
                num_classes=len(classes), in_channels=model.backbone.embed_dims)
    if PRE_LOGITS in head:
        part['hidden_dim'] = len(head[PRE_LOGITS])
    cfg = dict(backbone=backbone, neck=parts.get('neck'), head=part)
    check_channels(cfg)
    classifier = ImageClassifier(**{name: one and MODELS.build(one) for name, one in cfg.items()},
                                 data_preprocessor=model.data_preprocessor)
    load_weights(classifier, checkpoint)
    return classifier.eval(), classes


def imagenet_classes(count: int) -> list[str]:
    """The names of ImageNet's classes, by their number: 1000, 11821, 21841 or 21843; nothing for others."""
    subset = infer_imagenet_subset(dict(num_classes=count))
    return list(ImageNetInfo(subset).label_descriptions()) if subset else []
