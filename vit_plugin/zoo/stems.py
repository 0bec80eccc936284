"""Convert the stems of timm's models, which make tokens of an image, to our ``patch_embed``."""

from timm import layers
from timm.models import FeatureListNet
from timm.models.resnetv2 import ResNetV2
from timm.models.vision_transformer_hybrid import ConvStem
from timm.models.vitamin import MbConvStages
from torch import nn

from vit_plugin.arguments.fields import Section

from .norms import convert_norm

# Our stems whose CNN makes the tokens itself, without a projection after it.
WITHOUT_PROJECTION = ('ConvEmbed', 'MBConvEmbed')


def convert_stem(model: nn.Module, name: str) -> Section:
    """The ``patch_embed`` of a model with this name.

    Raises:
        ValueError: if its stem is of an unknown kind, or if ours cannot compute the same.
    """
    stem = model.patch_embed
    if stem.patch_size[0] != stem.patch_size[1]:
        raise ValueError('its patches are not square')
    if type(stem) is layers.PatchEmbed:
        cfg: Section = dict(type='PatchEmbed')
        if name.startswith('flexivit'):
            cfg = dict(type='FlexiPatchEmbed', kernel_size=stem.patch_size[0])
        if stem.img_size[0] % stem.patch_size[0] or stem.img_size[1] % stem.patch_size[1]:
            # timm crops images of the native size, and takes no other size.
            cfg['padding'] = 'valid'
    elif type(stem) is layers.HybridEmbed:
        cfg = _convert_cnn(stem.backbone)
    else:
        raise ValueError(f'its stem ({type(stem).__name__}) is not known')
    cfg['patch_size'] = stem.patch_size[0]
    if model.in_chans != 3:
        cfg['in_channels'] = model.in_chans
    # timm leaves out a projection by an nn.Identity.
    if isinstance(stem.proj, nn.Identity) != (cfg['type'] in WITHOUT_PROJECTION):
        raise ValueError(
            f'its stem {"lacks" if isinstance(stem.proj, nn.Identity) else "has"} a projection'
        )
    if isinstance(stem.proj, nn.Conv2d) and stem.proj.bias is None:
        cfg['bias'] = False
    if isinstance(stem, layers.PatchEmbed) and not isinstance(stem.norm, nn.Identity):
        cfg['norm_cfg'] = convert_norm(stem.norm)
    return cfg


def _convert_cnn(cnn: nn.Module) -> Section:
    """The ``patch_embed`` of a hybrid with this CNN, without its patch size.

    Raises:
        ValueError: see :func:`convert_stem`.
    """
    match cnn:
        case ResNetV2():
            return dict(
                type='ResNetEmbed', stage_depths=tuple(len(stage.blocks) for stage in cnn.stages)
            )
        case nn.Sequential(conv=layers.StdConv2dSame()):  # the stem of a ResNetV2
            return dict(type='ResNetEmbed', stage_depths=())
        case ConvStem():
            return _convert_convolutions(list(cnn))
        case MbConvStages():
            stages = [(stage[0].out_chs, len(stage)) for stage in cnn.stages]
            if len(stages) != 2:
                raise ValueError(f'the number of stages of its CNN ({len(stages)}) is not 2')
            if cnn.stem.out_chs != stages[0][0]:
                raise ValueError('its first convolutions are not as wide as its first stage')
            channels, depths = zip(*stages, strict=True)
            return dict(type='MBConvEmbed', channels=channels, stage_depths=depths)
        case FeatureListNet():
            name, indices = cnn.pretrained_cfg['architecture'], cnn.feature_info.out_indices
            maps = tuple(range(indices[-1] + 1))  # all up to timm's last one
            return dict(type='TimmEmbed', model_name=name, out_indices=maps)
    raise ValueError(f'its CNN ({type(cnn).__name__}) is not known')


def _convert_convolutions(convs: list[nn.Module]) -> Section:
    """The ``patch_embed`` of convolutions whose kernels do not overlap.

    Raises:
        ValueError: if they do, or if they have unknown norms or activations.
    """
    for layer in convs:
        conv = layer.conv
        if conv.kernel_size != conv.stride or len(set(conv.stride)) > 1 or any(conv.padding):
            raise ValueError('its convolutions overlap or are padded')
    if not all(
        isinstance(layer.bn, nn.BatchNorm2d) and isinstance(layer.bn.act, nn.GELU)
        for layer in convs[:-1]
    ):
        raise ValueError('its convolutions have other norms or activations than BatchNorm and GELU')
    return dict(
        type='ConvEmbed',
        channels=tuple(layer.conv.out_channels for layer in convs),
        strides=tuple(layer.conv.stride[0] for layer in convs),
    )
