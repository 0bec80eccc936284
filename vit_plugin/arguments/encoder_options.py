"""The options of a ViT's argument ``encoder``: each is a field, with its type, default and meaning.

They are declared only here. The check of ``encoder=dict(...)``, the arguments that the zoo reads
from timm's modules, the hints for loading weights and the table in docs/models.md follow from the
fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from typing_extensions import Required, TypedDict

from vit_plugin.errors import ConfigError

# ruff: noqa: RUF009  `option` is a field
from .fields import Count, Fraction, PositiveInt, Rate

QkvBias = bool | Literal['qv']


def option(default: Any, description: str, creates: Mapping[str, str] | None = None) -> Any:
    """Declare an option, a field of a dataclass.

    Args:
        default: the default value.
        description: what it means, for the documentation.
        creates: for values of the option, as written in Python, the pattern of the names of the
            parameters that this value creates, see :class:`~vit_plugin.weights.patterns.Pattern`.
    """
    return field(default=default, metadata=dict(description=description, creates=creates or {}))


@dataclass(frozen=True, kw_only=True)
class BlockOptions:
    """Options of a block beyond the paper.

    ``encoder`` takes one value, or a list with one per block.
    """

    qkv_bias: QkvBias = option(
        True,
        "whether queries, keys and values have a bias; `'qv'`: keys have none, as in BEiT and EVA",
        {'True': 'blocks.{i}.attn.qkv.bias', "'qv'": 'blocks.{i}.attn.qkv.(q|v)_bias'},
    )
    num_kv_heads: PositiveInt | None = option(
        None,
        'heads of keys and values, fewer in grouped-query attention (2305.13245); None: as many '
        'as queries have',
    )
    qk_norm: bool = option(
        False,
        'a norm of queries and keys in each head (2302.05442)',
        {'True': 'blocks.{i}.attn.(q|k)_norm.{rest}'},
    )
    attn_norm: bool = option(
        False,
        'a norm of the attended values before their projection (2210.06423)',
        {'True': 'blocks.{i}.attn.norm.{rest}'},
    )
    attn_drop_rate: Rate = option(0.0, 'dropout of the attention weights')
    proj_bias: bool = option(
        True,
        "biases of attention's projection and of the MLP",
        {'True': 'blocks.{i}.(attn.proj.bias|mlp.fc1.bias|mlp.fc2.bias)'},
    )
    mlp_norm: bool | Literal['input'] = option(
        False,
        "a norm of the MLP's hidden values (2210.06423); `'input'`: of its input, as in ViTamin",
        {'True': 'blocks.{i}.mlp.norm.{rest}', "'input'": 'blocks.{i}.mlp.input_norm.{rest}'},
    )
    gated_mlp: bool = option(False, 'a gate in the MLP, as in SwiGLU (2002.05202)')
    layer_scale_init_value: Fraction = option(
        0.0,
        'initial value of LayerScale (2103.17239); 0: no LayerScale',
        {'1e-5': 'blocks.{i}.ls{k}.gamma'},
    )
    mlp_layer_scale: bool = option(True, 'whether the MLP has a LayerScale too')


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Attention within windows (arXiv:2203.16527).

    Backbones whose ``tokens_in_windows`` is false allow no tokens before the patches. In the
    others, these are divided over the windows.

    Attributes:
        size: side of the windows in patches.
        number: instead of ``size``, the number of windows along each side of an image. They grow
            with the image, and have its aspect ratio.
        global_blocks: the blocks with global attention. Negative numbers count from the last block.

    Raises:
        ConfigError: unless one of size and number is given.
    """

    size: PositiveInt | None = None
    number: PositiveInt | None = None
    global_blocks: Sequence[int] = ()

    def __post_init__(self) -> None:
        if (self.size is None) == (self.number is None):
            raise ConfigError(
                'encoder: window needs size, the side of a window in patches, or number, the '
                'windows along a side of the image; give one of them.'
            )

    def within(self, grid: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of a window in a grid (h, w) of patches."""
        if self.number is None:
            return self.size or 0, self.size or 0
        return -(-grid[0] // self.number), -(-grid[1] // self.number)

    def of_blocks(self, num_layers: int) -> list['WindowOptions | None']:
        """The windows of each block. None means global attention.

        Raises:
            ConfigError: if there is no such block.
        """
        if not all(-num_layers <= i < num_layers for i in self.global_blocks):
            raise ConfigError(
                f'encoder: window.global_blocks={tuple(self.global_blocks)} must be some of the '
                f'blocks {-num_layers} to {num_layers - 1}.'
            )
        global_blocks = {i % num_layers for i in self.global_blocks}
        return [None if i in global_blocks else self for i in range(num_layers)]


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """Options that an encoder has once."""

    dist_token: Count = option(
        0, 'number of distillation tokens after the class token (2012.12877)', {'1': 'dist_token'}
    )
    reg_token: Count = option(
        0, 'number of registers after the class token (2309.16588)', {'...': 'reg_token'}
    )
    pre_norm: bool = option(
        False, 'a norm before the first block, as in CLIP', {'True': 'norm_pre.{rest}'}
    )
    final_norm: bool = option(True, 'a norm of every output', {'True': 'norm.{rest}'})
    window: WindowOptions | None = option(
        None,
        'attention within windows, `dict(size=..., global_blocks=...)`, or `number` in place '
        'of `size`: [Windows](#windows)',
    )


OPTIONS = {entry.name: entry for kind in (EncoderOptions, BlockOptions) for entry in fields(kind)}
# By pattern of parameter names, the option that creates them: for hints when a file has parameters
# that the model lacks.
CREATING_OPTIONS = {
    pattern: f'encoder=dict({name}={value})'
    for name, entry in OPTIONS.items()
    for value, pattern in entry.metadata['creates'].items()
}


def typed_entries(options: type, each_block: bool = False) -> dict[str, Any]:
    """The annotations of a dict with these options, for a ``TypedDict`` with ``total=False``.

    Args:
        options: a dataclass of options. Those without a default are required.
        each_block: whether an option may also have a list of values, one for each block.
    """
    hints: dict[str, Any] = get_type_hints(options, include_extras=True)
    required: Any = Required
    sequence: Any = Sequence
    for entry in fields(options):
        hint = hints[entry.name]
        if entry.default is MISSING:
            hints[entry.name] = required[hint]
        elif each_block:
            hints[entry.name] = hint | sequence[hint]
    return hints


if TYPE_CHECKING:
    WindowCfg = Mapping[str, Any]
    EncoderCfg = Mapping[str, Any]
else:  # for the dicts that a config may give
    WindowCfg = TypedDict('WindowCfg', typed_entries(WindowOptions), total=False)
    EncoderCfg = TypedDict(
        'EncoderCfg',
        {
            **typed_entries(EncoderOptions),
            **typed_entries(BlockOptions, each_block=True),
            'window': WindowCfg | None,
        },
        total=False,
    )


def read_options(
    encoder: Mapping[str, Any], num_layers: int
) -> tuple[EncoderOptions, list[BlockOptions]]:
    """The options of an encoder, and those of each of its blocks.

    Raises:
        ConfigError: if a list does not have one value for each block, or if a window has both or
            neither of size and number.
    """
    encoder_values = {
        entry.name: encoder[entry.name] for entry in fields(EncoderOptions) if entry.name in encoder
    }
    block_values = {
        entry.name: encoder[entry.name] for entry in fields(BlockOptions) if entry.name in encoder
    }
    window = encoder.get('window')
    encoder_values['window'] = None if window is None else WindowOptions(**window)
    for name, value in block_values.items():
        if isinstance(value, (list, tuple)) and len(value) != num_layers:
            raise ConfigError(
                f'encoder: {name} has {len(value)} values for {num_layers} blocks; give one for '
                'each, or one for all.'
            )
    per_block = {
        name: value if isinstance(value, (list, tuple)) else [value] * num_layers
        for name, value in block_values.items()
    }
    blocks = ({name: values[i] for name, values in per_block.items()} for i in range(num_layers))
    return EncoderOptions(**encoder_values), [BlockOptions(**block) for block in blocks]
