"""A stem from any CNN of timm."""

from collections.abc import Sequence
from typing import Annotated, Any

import timm
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import Unpack

from vit_plugin.arguments.fields import Count, PositiveInt
from vit_plugin.errors import ConfigError, first_line, is_out_of_memory
from vit_plugin.registry import MODELS
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.report import Report

from ..layers.map_sizes import find_size_mismatch
from ..layers.recompute import Recompute
from ..timm_weights import fit_timm, is_timm_checkpoint
from .padding import pad_to_multiple
from .stem import Stem, StemOptions

# Errors that timm raises for a model or an option that it does not have.
TIMM_ERRORS = (RuntimeError, AttributeError, AssertionError, IndexError, TypeError, ValueError)


@MODELS.register_module()
class TimmEmbed(Stem):
    """The feature maps of a timm model, then patches of the last map.

    The image is padded at the right and bottom to a multiple of the CNN's stride. So the grid does
    not depend on the padding inside the CNN: it is ceil(H / stride) x ceil(W / stride).

    Args:
        model_name: name of a model in ``timm.list_models()`` that supports ``features_only``. It
            may have ``timm://`` before it.
        in_channels, embed_dims, patch_size, **kwargs: see :class:`Stem`.
        out_indices: indices of the maps to use. The last one becomes the tokens. timm removes the
            later layers of most CNNs, but not of EfficientNet and HRNet. For these, DDP needs
            ``find_unused_parameters=True``.
        pretrained: whether to load timm's weights of this model. ``init_cfg=dict(type='Pretrained',
            checkpoint=...)`` loads them from a file, see :meth:`fit`.
        model_kwargs: further arguments of ``timm.create_model``.

    Raises:
        ConfigError: if timm has no such model, or if the model has no such feature maps, or maps of
            other sizes than stated.
    """

    depths = ('backbone.',)  # timm's models have no common definition of a stage

    def __init__(
        self,
        model_name: str,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        out_indices: Annotated[Sequence[Count], Field(min_length=1)] | None = None,
        patch_size: PositiveInt = 1,
        pretrained: bool = False,
        model_kwargs: dict | None = None,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        self.model_name = model_name = model_name.removeprefix('timm://')
        # The parent's constructor reads it.
        self.pretrained_arch = f'timm://{model_name}'
        options: dict[str, Any] = dict(pretrained=pretrained, in_chans=in_channels)
        if out_indices is not None:
            options['out_indices'] = tuple(sorted(out_indices))
        backbone = _build_cnn(model_name, options, model_kwargs or {}, kwargs.get('with_cp'))
        info = backbone.feature_info
        if difference := find_size_mismatch(backbone, info.reduction(), in_channels):
            raise ConfigError(
                f'patch_embed: {model_name} returns {difference}, and a stem counts its tokens by '
                'the stride; take another model_name.'
            )
        super().__init__(
            in_channels,
            embed_dims,
            patch_size,
            **kwargs,
            feature_strides=info.reduction(),
            feature_channels=info.channels(),
        )
        self.backbone = backbone
        # Keeps MMEngine from overwriting pretrained weights by timm's initialization.
        self.backbone.is_init = True

    def match_weights(self, weights: Weights) -> tuple[dict[str, Tensor], Report]:
        """The weights of the CNN, from a file of timm's whole model or of a hybrid with this CNN.

        The projection to tokens keeps its values. See
        :func:`~vit_plugin.models.timm_weights.fit_timm`.
        """
        fitted, report = fit_timm(self.backbone, self.model_name, weights)
        tensors = {f'backbone.{key}': value for key, value in fitted.items()}
        return tensors, report.with_prefix('backbone.')

    def is_cnn_checkpoint(self, weights: Weights) -> bool:
        """See :meth:`Stem.is_cnn_checkpoint`."""
        return is_timm_checkpoint(self.model_name, weights)

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.backbone(pad_to_multiple(images, self.feature_strides[-1])))


def _build_cnn(
    model_name: str, options: dict, model_kwargs: dict, with_cp: Recompute | None
) -> nn.Module:
    """Build timm's model that returns feature maps.

    Raises:
        ConfigError: if timm has no such model, if the model has no such maps, or if its weights
            cannot be downloaded.
    """
    try:
        backbone = timm.create_model(model_name, features_only=True, **options, **model_kwargs)
        if with_cp:
            backbone.set_grad_checkpointing(True)
    except TIMM_ERRORS as error:
        near = timm.list_models(f'*{model_name[:6]}*')[:5]  # the start names the family
        raise ConfigError(
            f'patch_embed: timm returns no feature maps for model_name={model_name!r} '
            f'({str(error) or type(error).__name__}); similar names are '
            f'{", ".join(near) or "none"}.'
        ) from error
    except Exception as error:  # from the hub or the network
        if not options['pretrained'] or is_out_of_memory(error):
            raise
        raise ConfigError(
            f'patch_embed: the weights of timm://{model_name} cannot be downloaded '
            f'({first_line(error)}); check the network, or leave out pretrained=True.'
        ) from error
    return backbone
