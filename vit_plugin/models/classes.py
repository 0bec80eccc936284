"""Match a model's head with the classes of the data."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from vit_plugin.arguments import fits
from vit_plugin.errors import ConfigError

# Components of a model whose `num_classes` must equal that of the data, in any framework.
CLASS_HEADS = (
    'head',
    'bbox_head',
    'mask_head',
    'roi_head.bbox_head',
    'roi_head.mask_head',
    'decode_head',
    'auxiliary_head',
)
# Names of the classifiers in MMDetection's heads.
DETECTOR_CLASSIFIERS = (
    'fc_cls',
    'cls_branches',
    'cls_embed',
    'cls_score',
    'conv_cls',
    'multi_level_conv_cls',
    'atss_cls',
    'gfl_cls',
    'retina_cls',
    'rtm_cls',
    'tood_cls',
    'vfnet_cls',
)
# Names of the layers and parameters of MMSegmentation's heads that depend on the classes: of most
# heads, of MaskFormer, PointRend, DANet, DDRNet, PIDNet, EncNet and Segmenter.
SEGMENTOR_CLASSIFIERS = (
    'conv_seg',
    'cls_embed',
    'fc_seg',
    'pam_conv_seg',
    'cam_conv_seg',
    'aux_cls_seg',
    'p_cls_seg',
    'se_layer',
    'cls_emb',
    'mask_norm',
)


def check_head(model: nn.Module) -> None:
    """Raise a ``ConfigError`` if an MMPretrain classifier has no head.

    Without a head it cannot predict, and can only be trained with a teacher.
    """
    model = getattr(model, 'module', model)  # unwraps DDP
    needed = hasattr(type(model), 'with_head') and not getattr(model, 'teacher', None)
    # Only a head=None is in vars(model): torch keeps modules elsewhere.
    if needed and vars(model).get('head', model) is None:
        raise ConfigError(
            f'model.head is None, but {type(model).__name__} computes losses and predictions with '
            'it; give a head, such as vit_plugin.ViTClsHead.'
        )


def keep_classifier(model: nn.Module, weights: dict[str, Any]) -> list[str]:
    """Replace the classifiers in ``weights``, in place, with the model's own.

    Use it for a checkpoint that was trained on other classes, even if their number is the same. In
    a classifier's head, this is the last layer. A detector's head names its classifiers in
    ``class_layers``, and a query-based backbone in ``added_classifiers``. MMDetection's heads have
    those in ``DETECTOR_CLASSIFIERS``, and MMSegmentation's, which may be a list, those in
    ``SEGMENTOR_CLASSIFIERS``.

    Returns:
        The names of the replaced weights.
    """
    prefixes: list[str] = []
    head = getattr(model, 'head', None)
    if isinstance(head, nn.Module):
        num_classes = getattr(head, 'num_classes', None)
        prefixes += [
            f'head.{name}.'
            for name, layer in head.named_modules()
            if isinstance(layer, nn.Linear)
            and layer.out_features == num_classes
            and name.rpartition('.')[2] != 'pre_logits'  # maybe as wide as there are classes
        ]
    for part in ('bbox_head', 'roi_head', 'panoptic_head'):
        layers = getattr(getattr(model, part, None), 'class_layers', None)
        if layers is None:
            prefixes += _parameters_with(model, part, DETECTOR_CLASSIFIERS)
        else:
            prefixes += [f'{part}.{name}.' for name in layers]
    for part in ('decode_head', 'auxiliary_head'):
        # The output of a depth head has no classes.
        if getattr(getattr(model, part, None), 'task', '') != 'depth':
            prefixes += _parameters_with(model, part, SEGMENTOR_CLASSIFIERS)
    backbone = getattr(model, 'backbone', None)
    prefixes += [f'backbone.{name}' for name in getattr(backbone, 'added_classifiers', ())]
    own_tensors = {
        name: value
        for name, value in model.state_dict().items()
        if name.startswith(tuple(prefixes))
    }
    kept = [name for name in weights if name.removeprefix('module.') in own_tensors]
    weights.update(
        {name: own_tensors[name.removeprefix('module.')].detach().clone() for name in kept}
    )
    return kept


def _parameters_with(model: nn.Module, part: str, names: Sequence[str]) -> list[str]:
    """The parameters of a part of a model whose names in it contain one of these, between dots."""
    head = getattr(model, part, None)
    if not isinstance(head, nn.Module):
        return []
    parameters = head.named_parameters(remove_duplicate=False)  # heads of several blocks share one
    return [f'{part}.{name}' for name, _ in parameters if not {*names}.isdisjoint(name.split('.'))]


def check_classes(model: nn.Module, meta: Mapping[str, Any] | None, whose: str) -> None:
    """Compare the names of classes with the heads of the model.

    Args:
        model: the model.
        meta: ``metainfo`` of a data set, with the names as ``classes``. Without names nothing is
            compared.
        whose: the data set, for the message.

    Raises:
        ConfigError: if the names are not strings, or if a head has a different number of classes.
    """
    names = (meta or {}).get('classes')
    if not names:
        return
    if not fits(Sequence[str], names):
        raise ConfigError(f'The classes of {whose} must be a list of names, but are {names!r:.80}.')
    model = getattr(model, 'module', model)  # unwraps DDP or test-time augmentation
    modules = dict(model.named_modules())
    for name in CLASS_HEADS:
        component = modules.get(name)
        # The stages of a cascade are a list of heads.
        for i, head in [
            (None, component),
            *enumerate(component if isinstance(component, nn.ModuleList) else ()),
        ]:
            # Data of depth may name classes, such as kinds of rooms, that its heads do not predict.
            if getattr(head, 'task', '') == 'depth':
                continue
            num_classes = getattr(head, 'num_classes', None)
            if isinstance(num_classes, int) and num_classes != len(names):
                field = name if i is None else f'{name}.{i}'
                raise ConfigError(
                    f'model.{field}.num_classes={num_classes} does not fit {whose} with '
                    f'{len(names)} classes: set it to {len(names)}, or give the names of the '
                    'classes of the model there.'
                )
