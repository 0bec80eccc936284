"""The order of a Vision Transformer's parts: layer-wise decay, freezing, sharding and outputs."""

from torch import nn

from vit_plugin.errors import ConfigError

from ..layers.encoder import Encoder
from ..layers.position_bias import BIAS_TABLE
from ..loading.loadable import LoadableBackbone
from ..stems import Stem


class LayeredBackbone(LoadableBackbone):
    """Base class of a backbone made of a stem, tokens with positions, blocks and a norm.

    It implements :class:`~vit_plugin.models.protocol.Backbone` and computes nothing itself. A
    subclass sets the attributes below in its constructor, and also ``drop_after_pos``, ``rope`` and
    ``norm_pre``. Then it calls ``_freeze``.
    """

    patch_embed: Stem
    blocks: Encoder
    prefix_tokens: tuple[str, ...]
    num_prefix_tokens: int
    embed_dims: int
    num_layers: int
    out_indices: tuple[int, ...]
    out_type: str
    frozen_stages: int

    @property
    def num_extra_tokens(self) -> int:
        """MMPretrain's name of ``num_prefix_tokens``, which its ``vis_cam`` asks for."""
        return self.num_prefix_tokens

    @property
    def in_channels(self) -> int:
        """Channels of the images."""
        return self.patch_embed.in_channels

    @property
    def stem_maps(self) -> tuple[int, ...]:
        """Indices of the stem's maps in a pyramid: those that are finer than the tokens."""
        if not self.out_type.startswith('pyramid'):
            return ()
        strides = self.patch_embed.feature_strides
        return tuple(i for i, stride in enumerate(strides) if stride < self.patch_embed.stride)

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output."""
        stem_channels = (self.patch_embed.feature_channels[i] for i in self.stem_maps)
        width = self.embed_dims
        if self.out_type == 'pyramid_cls':  # the class token is appended to each patch
            width *= 2
        return (*stem_channels, *(width for _ in self.out_indices))

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each output, in pixels."""
        stem_strides = (self.patch_embed.feature_strides[i] for i in self.stem_maps)
        return (*stem_strides, *(self.patch_embed.stride for _ in self.out_indices))

    def no_weight_decay(self) -> set[str]:
        """Names of the parameters without weight decay: tokens and positions.

        timm's models have the same method.
        """
        tables = (
            name
            for name, _ in self.named_parameters()
            if name.startswith('rope.') or name.endswith(BIAS_TABLE)
        )
        return {*self.prefix_tokens, 'pos_embed', *tables}

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and the number of depths, for layer-wise decay.

        Depth 0 is next to the image. A CNN's root and each of its stages have a depth of their own.
        The projection to tokens, the tokens before the patches, the positions and the norm before
        the blocks share one depth. Each block has its own. The final norm and all parameters
        outside the backbone are last. For a pure ViT these are MMPretrain's numbers.

        Args:
            param_name: full name of the parameter.
            prefix: prefix of the backbone's own names, such as ``'backbone.'``.
        """
        stem_depths = self.patch_embed.num_depths
        num_depths = stem_depths + self.num_layers + 1  # 1 for the final norm
        match param_name.removeprefix(prefix).split('.') if param_name.startswith(prefix) else []:
            case ['patch_embed', *rest]:
                return self.patch_embed.layer_depth('.'.join(rest)), num_depths
            case [
                'cls_token'
                | 'dist_token'
                | 'reg_token'
                | 'pos_embed'
                | 'rope'
                | 'rel_pos_bias'
                | 'norm_pre',
                *_,
            ]:
                return stem_depths - 1, num_depths
            case ['blocks', block, *_]:
                return stem_depths + int(block), num_depths
        return num_depths - 1, num_depths

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time, see :mod:`vit_plugin.engine.sharding`.

        These are the stem's CNN, its projection, and each block.
        """
        # Exclude the stem itself: it returns a view, on which FSDP's hooks could be lost.
        return [*self.patch_embed.children(), *self.blocks]

    def train(self, mode: bool = True) -> 'LayeredBackbone':
        """Set the training mode. Frozen parts stay in eval mode. Returns the model."""
        super().train(mode)
        if self.patch_embed.frozen:
            self.patch_embed.eval()
        if self.frozen_stages >= 0:
            before_blocks = (self.patch_embed, self.drop_after_pos, self.rope, self.norm_pre)
            for module in (*before_blocks, *self.blocks[: self.frozen_stages]):
                module.eval()
        return self

    def _freeze(self) -> None:
        """Freeze the parameters up to ``frozen_stages``, by their depths."""
        if self.patch_embed.frozen:
            self.patch_embed.requires_grad_(False)
        stages = self.frozen_stages
        if stages < 0:
            return
        frozen_depths = self.patch_embed.num_depths + stages
        if stages == self.num_layers:
            frozen_depths += 1  # the final norm
        for name, parameter in self.named_parameters():
            if self.get_layer_depth(name)[0] < frozen_depths:
                parameter.requires_grad = False


def read_frozen_stages(frozen_stages: int | str, num_stages: int, model: str = 'this arch') -> int:
    """The number of frozen stages. ``'all'`` means ``num_stages``, -1 means none.

    ``model`` is its name for the message.

    Raises:
        ConfigError: if the number is larger than ``num_stages``.
    """
    number = num_stages if frozen_stages == 'all' else int(frozen_stages)
    if number > num_stages:
        raise ConfigError(
            f'frozen_stages={number} is out of range: -1 (none) to {num_stages} (all) for {model}.'
        )
    return number


def frozen_modules(model: nn.Module) -> tuple[str, ...]:
    """Names of the modules in a model that have parameters, all of them frozen."""
    return tuple(
        name
        for name, module in model.named_modules()
        if name
        and [*module.parameters()]
        and not any(parameter.requires_grad for parameter in module.parameters())
    )
