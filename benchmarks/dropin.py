"""Every config of MMPretrain's with a Vision Transformer: does it run on our backbone by one
changed line?

``type='VisionTransformer'`` becomes ``type='vit_plugin.MMVisionTransformer'``, and nothing else
changes. Both are built whole on the meta device, where the numbers of their parameters must be
equal. Then both are built with their first two blocks, at full width. Ours loads MMPretrain's state
dict, in float64, and the outputs are compared on images of the native size and of another one.

    python benchmarks dropin [--configs 'deit*/*'] [--out dropin.md]

Prints a row for each backbone: the largest difference relative to the largest value, or rejected
with the reason. Ends with the numbers for each folder of configs, and with status 1 if anything is
unequal. Takes some ten minutes on a core.

Two of MMPretrain's classes compute something else than their papers. They are mended before the
comparison, see ``MENDED``: what is equal then is the mended model.
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
from mmpretrain.models import VisionTransformer as Theirs
from mmpretrain.registry import MODELS as THEIRS
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.files.untrusted_text import markdown_table
from vit_plugin.registry import MODELS

CONFIGS = Path(mmpretrain.__file__).parent / '.mim/configs'
KINDS = {
    name
    for name, kind in THEIRS.module_dict.items()
    if isinstance(kind, type) and issubclass(kind, Theirs)
}
TOLERANCE = 1e-12
BLOCKS = 2


def norm_before_mlp(model: nn.Module) -> None:
    """DeiT3's blocks apply ``ln1`` before the MLP too.

    Give ``ln2``, which they never use, the same values.
    """
    for layer in model.layers:
        layer.ln2.load_state_dict(layer.ln1.state_dict())


def rotary_of_eva02(model: nn.Module) -> None:
    """Give ViTEVA02 the table of EVA-02's authors on every grid, as MMPretrain's checkpoints do on
    one.
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


MENDED: dict[str, Callable[[nn.Module], None]] = {
    'DeiT3': norm_before_mlp,
    'ViTEVA02': rotary_of_eva02,
}


def backbones(cfg: Any, path: str = 'model') -> Iterator[tuple[str, dict]]:
    """The path and the config of every Vision Transformer of MMPretrain's in a model."""
    if isinstance(cfg, dict):
        if str(cfg.get('type')).rpartition('.')[2] in KINDS:
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
                if any(kind in file.read_text() for kind in KINDS):
                    raise
                warnings.warn(
                    f'{name} cannot be read, and names no Vision Transformer: {error}', stacklevel=2
                )
                continue
            yield from ((str(name), path, cfg) for path, cfg in backbones(model))


def shrunk(cfg: dict, narrow: Mapping[str, int]) -> dict:
    """The backbone with its first two blocks, for images of its own size.

    ``narrow`` may change its width.
    """
    sizes = THEIRS.get(cfg['type']).arch_zoo[cfg['arch']]
    frozen = cfg.get('frozen_stages', -1)
    changed = dict(copy.deepcopy(cfg), arch=dict(sizes, num_layers=BLOCKS, **narrow))
    if frozen == sizes['num_layers']:
        changed['frozen_stages'] = BLOCKS
    # A checkpoint that does not exist, or random values that are replaced.
    changed.pop('init_cfg', None)
    return changed


def original(cfg: dict) -> nn.Module:
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return THEIRS.build(copy.deepcopy(cfg))


def ours(cfg: dict) -> nn.Module:
    """Our backbone for a config of theirs: the one changed line."""
    return MODELS.build(
        dict(copy.deepcopy(cfg), type=f'vit_plugin.MM{cfg["type"].rpartition(".")[2]}')
    )


def randomize(model: nn.Module) -> None:
    """Draw random values, since zeros and ones would hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02) if parameter.ndim > 1 else parameter.uniform_(0.5, 1.5)


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def learning(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


@torch.no_grad()
def compare(cfg: dict, **narrow: int) -> float:
    """The largest difference of the outputs, relative to the largest value.

    Args:
        cfg: a backbone of MMPretrain's.
        **narrow: sizes in place of its own.

    Raises:
        ConfigError: if our backbone rejects the config.
    """
    torch.manual_seed(0)
    with torch.device('meta'):
        whole = ours(cfg), original(cfg)
    assert count(whole[0]) == count(whole[1])
    cfg = shrunk(cfg, narrow)
    mine = ours(cfg).double().eval()
    theirs = original(cfg).double()
    theirs.eval()
    randomize(theirs)
    MENDED.get(cfg['type'], lambda model: None)(theirs)
    missing, unexpected = mine.load_state_dict(theirs.state_dict(), strict=False)
    assert not unexpected, unexpected
    assert not missing, missing
    assert learning(mine) == learning(theirs)
    side, patch = mine.img_size[0], mine.patch_embed.stride
    sizes = (mine.img_size, (side - 5 * patch + 3, side - 3 * patch))
    return max(
        difference(theirs(images), mine(images))
        for size in sizes
        for images in [torch.randn(1, 3, *size, dtype=torch.float64)]
    )


def difference(expected: tuple, actual: tuple) -> float:
    """The largest difference relative to the largest value. inf for other shapes, or if a value is
    not finite.
    """
    if len(expected) != len(actual):
        return float('inf')
    if isinstance(expected, tuple):
        return max(map(difference, expected, actual))
    if expected.shape != actual.shape or not expected.isfinite().all():
        return float('inf')
    return float((expected - actual).abs().max() / expected.abs().max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--configs', default='*', help='pattern of the configs')
    parser.add_argument('--out', type=Path, help='file for the table')
    args = parser.parse_args()
    warnings.filterwarnings('ignore', category=UserWarning)
    MMLogger.get_current_instance().setLevel('ERROR')
    counts, worst, known = {}, 0.0, {}
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
    columns = ('equal', 'rejected', 'unequal')
    table = [['configs', 'backbones', *columns]]
    for folder, row in (*counts.items(), ('all', total)):
        table.append([f'`{folder}`', f'{row.total()}', *(f'{row[column]}' for column in columns)])
    print('', markdown_table(table, numbers=4), sep='\n')
    print(f'\nLargest difference in float64: {worst:.1e}')
    return int(total['unequal'] > 0)


if __name__ == '__main__':
    sys.exit(main())
