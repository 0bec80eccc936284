"""Make the model index of the classification recipes, which mim and MMPretrain read.

    python tests/support/model_index.py      # writes model-index.yml and configs/*/metafile.yml

Every entry is computed: parameters and FLOPs from the model, accuracies and their sources from the
docstring of the recipe. A test compares the files with what this computes.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mmengine
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from anyfolder.complete import write_text

ROOT = Path(__file__).parents[2]
PAPER = dict(
    Title='An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale',
    URL='https://arxiv.org/abs/2010.11929',
)
# Folder below configs/ -> what its models have in common in the index.
COLLECTIONS = {
    'vit': dict(
        Name='Vision Transformer (vit_plugin)',
        Metadata=dict(Architecture=['Multi-Head Attention']),
        Paper=PAPER,
    ),
    'hybrid_vit': dict(
        Name='Hybrid Vision Transformer (vit_plugin)',
        Metadata=dict(
            Architecture=['Weight Standardization', 'Group Normalization', 'Multi-Head Attention']
        ),
        Paper=PAPER,
    ),
}
# Part of a recipe's name -> its data set. The first that occurs counts, so cifar100 is before
# cifar10.
DATASETS = {
    'in1k': 'ImageNet-1k',
    'in21k': 'ImageNet-21k',
    'cifar100': 'CIFAR-100',
    'cifar10': 'CIFAR-10',
    'digits': "scikit-learn's digits",
}
# An accuracy in a docstring, with its source.
FIGURE = re.compile(r'(Published[^:.]*|Ours, [\d-]+): ([\d.]+) % top-1')


def recipes(folder: str) -> list[Path]:
    """The recipes of a folder of the index, sorted by name.

    Recipes with ``-choice`` in their name are left out: they serve to choose a variant.
    """
    return sorted(
        path for path in ROOT.joinpath('configs', folder).glob('*.py') if '-choice' not in path.stem
    )


def entry(path: Path) -> dict[str, Any]:
    """The entry of a recipe in the index."""
    text = ' '.join((ast.get_docstring(ast.parse(path.read_text())) or '').split())
    data = next(name for key, name in DATASETS.items() if f'_{key}' in path.stem)
    source, figure = (FIGURE.findall(text) or [('not measured, and none published', None)])[-1]
    return {
        'Name': path.stem,
        'Metadata': dict(complexity(Config.fromfile(path).model), **{'Training Data': data}),
        'In Collection': COLLECTIONS[path.parent.name]['Name'],
        'Results': [
            dict(
                Task='Image Classification',
                Dataset=data,
                Metrics={'Top 1 Accuracy': float(figure)} if figure else {},
            )
        ],
        'Config': f'configs/{path.parent.name}/{path.name}',
        'Accuracy': source,
    }


def complexity(model: Mapping[str, Any]) -> dict[str, int]:
    """Count FLOPs and parameters of a classifier without allocating its weights.

    Returns:
        ``FLOPs``: multiply-adds for one image of the native size, as MMPretrain counts them.
        ``Parameters``: the number of parameters.
    """
    with torch.device('meta'), DefaultScope.overwrite_default_scope('mmpretrain'):
        classifier = MODELS.build(dict(model, data_preprocessor=None)).eval()
    backbone = classifier.backbone
    with FakeTensorMode(allow_non_fake_inputs=True):
        classifier.to_empty(device='cpu')
        images = torch.empty(1, backbone.patch_embed.in_channels, *backbone.img_size)
        # Some versions of torch do not count the fused attention of a CPU.
        with (
            torch.no_grad(),
            sdpa_kernel(SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
        ):
            classifier(images, mode='tensor')
    return dict(
        FLOPs=counter.get_total_flops() // 2,  # it counts a multiply-add as two
        Parameters=sum(p.numel() for p in classifier.parameters()),
    )


def written() -> dict[str, str]:
    """The text of each file of the index, by its path."""
    files = {}
    for folder, collection in COLLECTIONS.items():
        content = dict(Collections=[collection], Models=[entry(path) for path in recipes(folder)])
        files[f'configs/{folder}/metafile.yml'] = mmengine.dump(
            content, file_format='yaml', sort_keys=False
        )
    return {'model-index.yml': mmengine.dump(dict(Import=list(files)), file_format='yaml'), **files}


if __name__ == '__main__':
    for name, text in written().items():
        write_text(ROOT / name, text)
