"""Check that MMPretrain's configs of Vision Transformers run on our backbone by one changed line.

``type='VisionTransformer'`` becomes ``type='vit_plugin.MMVisionTransformer'``, and nothing else
changes. Both backbones are built on the meta device, where their numbers of parameters must be
equal. Then both are built with two blocks at full width. Ours loads MMPretrain's state dict, in
float64, and the outputs are compared on images of the native size and of another one.

    python benchmarks dropin [--configs 'deit*/*'] [--out dropin.md]

Prints a row for each backbone: the largest difference relative to the largest value, or why the
config is rejected. Ends with the counts for each folder of configs, and with status 1 if a backbone
is unequal. Takes some ten minutes on a core.

Two of MMPretrain's classes compute something else than their papers. They are corrected before the
comparison, see ``CORRECTIONS``.
"""

import argparse
import copy
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mmpretrain
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope
from mmpretrain.models import VisionTransformer as OriginalVisionTransformer
from mmpretrain.registry import MODELS as ORIGINAL_MODELS
from torch import Tensor, nn

from benchmarks.measuring.differences import relative_difference
from vit_plugin.errors import ConfigError
from vit_plugin.files.untrusted_text import markdown_table
from vit_plugin.registry import MODELS

CONFIGS = Path(mmpretrain.__file__).parent / '.mim/configs'
# The registered names of MMPretrain's Vision Transformers.
CLASS_NAMES = {
    name
    for name, cls in ORIGINAL_MODELS.module_dict.items()
    if isinstance(cls, type) and issubclass(cls, OriginalVisionTransformer)
}
TOLERANCE = 1e-12
BLOCKS = 2  # of the compared backbones


def norm_before_mlp(model: nn.Module) -> None:
    """Give the blocks' ``ln2`` the values of ``ln1``.

    MMPretrain's DeiT3 applies ``ln1`` before the MLP too, and never ``ln2``. Ours applies ``ln2``.
    """
    for layer in model.layers:
        layer.ln2.load_state_dict(layer.ln1.state_dict())


def rotary_of_eva02(model: nn.Module) -> None:
    """Give ViTEVA02 the rotary table of EVA-02's authors on every grid.

    MMPretrain computes another one; its checkpoints hold the authors' table of one grid.
    """

    def table(height: int, width: int) -> tuple[Tensor, Tensor]:
        dims = model.rope.half_dim
        frequencies = (1 / 10_000 ** (torch.arange(0, dims, 2) / dims)).repeat_interleave(2)
        y, x = (torch.arange(side) / side * 16 for side in (height, width))
        angles = torch.cat(
            (
                y[:, None, None] * frequencies.expand(1, width, -1),
                x[None, :, None] * frequencies.expand(height, 1, -1),
            ),
            dim=-1,
        ).flatten(0, 1)
        return angles.cos().double(), angles.sin().double()

    model.rope.compute_position_embedding = lambda: table(*model.rope.patch_resolution)
    model.rope.freqs_cos, model.rope.freqs_sin = table(*model.rope.patch_resolution)


CORRECTIONS: dict[str, Callable[[nn.Module], None]] = {
    'DeiT3': norm_before_mlp,
    'ViTEVA02': rotary_of_eva02,
}


def backbones(cfg: Any, path: str = 'model') -> Iterator[tuple[str, dict]]:
    """The path and the config of every Vision Transformer of MMPretrain's in a model."""
    if isinstance(cfg, dict):
        if str(cfg.get('type')).rpartition('.')[2] in CLASS_NAMES:
            # The model around the backbone removes `pretrained`.
            yield path, {name: value for name, value in cfg.items() if name != 'pretrained'}
        for name, value in cfg.items():
            yield from backbones(value, f'{path}.{name}')


def backbones_in_configs(pattern: str = '*/*') -> Iterator[tuple[str, str, dict]]:
    """The name of each config, the path and the backbone of each Vision Transformer in it."""
    for file in sorted(CONFIGS.rglob('*.py')):
        name = file.relative_to(CONFIGS)
        if name.parts[0] != '_base_' and name.match(pattern):
            try:
                model = Config.fromfile(file).to_dict().get('model')
            except (KeyError, RuntimeError) as error:
                if any(class_name in file.read_text() for class_name in CLASS_NAMES):
                    raise
                warnings.warn(
                    f'{name} cannot be read, and names no Vision Transformer: {error}', stacklevel=2
                )
                continue
            yield from ((str(name), path, cfg) for path, cfg in backbones(model))


def shrunk(cfg: dict, sizes: Mapping[str, int]) -> dict:
    """The config with two blocks. ``sizes`` replaces other sizes of its architecture."""
    arch = ORIGINAL_MODELS.get(cfg['type']).arch_zoo[cfg['arch']]
    frozen = cfg.get('frozen_stages', -1)
    changed = dict(copy.deepcopy(cfg), arch=dict(arch, num_layers=BLOCKS, **sizes))
    if frozen == arch['num_layers']:
        changed['frozen_stages'] = BLOCKS
    # It names a checkpoint, which does not fit, or random values, which are replaced.
    changed.pop('init_cfg', None)
    return changed


def original(cfg: dict) -> nn.Module:
    """Build MMPretrain's backbone."""
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return ORIGINAL_MODELS.build(copy.deepcopy(cfg))


def ours(cfg: dict) -> nn.Module:
    """Build our backbone from a config of MMPretrain, of which only the type is changed."""
    return MODELS.build(
        dict(copy.deepcopy(cfg), type=f'vit_plugin.MM{cfg["type"].rpartition(".")[2]}')
    )


def randomize(model: nn.Module) -> None:
    """Draw random values, since zeros and ones would hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02) if parameter.ndim > 1 else parameter.uniform_(0.5, 1.5)


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def count_trainable(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


@torch.no_grad()
def compare(cfg: dict, **sizes: int) -> float:
    """The largest difference of the outputs of both backbones, relative to the largest value.

    Args:
        cfg: a backbone of MMPretrain's.
        **sizes: sizes in place of those of its architecture, to make it small.

    Raises:
        ConfigError: if our backbone rejects the config.
    """
    torch.manual_seed(0)
    with torch.device('meta'):
        whole = ours(cfg), original(cfg)
    assert count_parameters(whole[0]) == count_parameters(whole[1])
    cfg = shrunk(cfg, sizes)
    plugin = ours(cfg).double().eval()
    theirs = original(cfg).double()
    theirs.eval()
    randomize(theirs)
    CORRECTIONS.get(cfg['type'], lambda model: None)(theirs)
    missing, unexpected = plugin.load_state_dict(theirs.state_dict(), strict=False)
    assert not unexpected, unexpected
    assert not missing, missing
    assert count_trainable(plugin) == count_trainable(theirs)
    side, patch = plugin.img_size[0], plugin.patch_embed.stride
    # The other size is smaller and not square, and its height no multiple of the patch size.
    image_sizes = (plugin.img_size, (side - 5 * patch + 3, side - 3 * patch))
    return max(
        difference(theirs(images), plugin(images))
        for size in image_sizes
        for images in [torch.randn(1, 3, *size, dtype=torch.float64)]
    )


def difference(expected: Any, actual: Any) -> float:
    """The largest difference relative to the largest value, of tensors or nested tuples of them.

    inf if shapes differ or a value is not finite.
    """
    if len(expected) != len(actual):
        return float('inf')
    if isinstance(expected, tuple):
        return max(map(difference, expected, actual))
    return relative_difference(actual, expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--configs', default='*', help='pattern of the configs')
    parser.add_argument('--out', type=Path, help='file for the table')
    args = parser.parse_args()
    warnings.filterwarnings('ignore', category=UserWarning)
    MMLogger.get_current_instance().setLevel('ERROR')
    counts, worst = {}, 0.0
    known = {}  # many configs have the same backbone
    rows = ['| config | backbone | outputs |', '|---|---|---|']
    print(*rows, sep='\n')
    for name, path, cfg in backbones_in_configs(args.configs):
        key = str(sorted(cfg.items(), key=str))
        if key not in known:
            try:
                known[key] = compare(cfg)
            except ConfigError as error:
                known[key] = str(error)
        value = known[key]
        worst = max(worst, 0 if isinstance(value, str) else value)
        verdict = (
            'rejected' if isinstance(value, str) else 'equal' if value <= TOLERANCE else 'unequal'
        )
        counts.setdefault(name.partition('/')[0], Counter())[verdict] += 1
        rows.append(
            f'| {name} | {path}: {cfg["type"]} | '
            + (f'rejected: {value}' if verdict == 'rejected' else f'{verdict}, {value:.1e}')
            + ' |'
        )
        print(rows[-1], flush=True)
        if args.out:
            args.out.write_text('\n'.join(rows) + '\n')
    total = sum(counts.values(), Counter())
    if not total:
        parser.error(f'--configs {args.configs}: no config with a Vision Transformer matches it')
    columns = ('equal', 'rejected', 'unequal')
    table = [['configs', 'backbones', *columns]]
    for folder, row in (*counts.items(), ('all', total)):
        table.append([f'`{folder}`', f'{row.total()}', *(f'{row[column]}' for column in columns)])
    print('', markdown_table(table, numbers=4), sep='\n')
    print(f'\nLargest difference in float64: {worst:.1e}')
    return int(total['unequal'] > 0)


if __name__ == '__main__':
    sys.exit(main())
