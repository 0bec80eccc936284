"""RT-DETR, D-FINE, DEIM, DEIMv2, ECDet and ECSeg beside their authors' own code, in float64.

    python benchmarks fine_detectors FOLDER [--only NAME ...]

``FOLDER`` has clones of lyuwenyu/RT-DETR, Peterande/D-FINE, and DEIM, DEIMv2 and EdgeCrafter of
Intellindust-AI-Lab, by their last names. The authors' classes are built by their configs with
random weights, without the rest of their packages. They write a file as their training does, with
averages inside, which this package reads as ``infer`` does. Compared are logits, boxes and masks
for two sizes of images, and all losses of a step for the same outputs, noise and points. Only
squares are compared: on rectangles the authors' sine positions are those of other elements.
"""

import argparse
import importlib
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from torch import Tensor, nn

import vit_plugin.detection  # noqa: F401  before MMDetection
from benchmarks.detectors import LIMIT, apart
from benchmarks.detectors_reference import doubled, images
from vit_plugin.inference.load import load
from vit_plugin.projects.d_fine.noised_detr_head import QueryOutputs
from vit_plugin.projects.d_fine.noised_objects import NoisedObjects

SIZES = [(256, 256), (320, 320)]
CLASSES = 80


class Repository(NamedTuple):
    """A clone.

    Attributes:
        folder: the folder in the clone that contains the package.
        package: the package's name.
        modules: the modules with classes that configs name.
        configs: the folder of the configs, and their names.
        criterion: the class of its losses. Empty: losses are not compared.
    """

    folder: str
    package: str
    modules: tuple[str, ...]
    configs: tuple[str, ...]
    criterion: str = ''


REPOSITORIES = {
    'RT-DETR': Repository(
        'RT-DETR/rtdetr_pytorch',
        'src',
        ('nn.backbone.presnet', 'zoo.rtdetr.hybrid_encoder', 'zoo.rtdetr.rtdetr_decoder'),
        tuple(
            f'configs/rtdetr/rtdetr_{name}_6x_coco.yml'
            for name in ('r18vd', 'r34vd', 'r50vd_m', 'r50vd', 'r101vd')
        ),
    ),
    'RT-DETRv2': Repository(
        'RT-DETR/rtdetrv2_pytorch',
        'src',
        (
            'nn.backbone.presnet',
            'nn.backbone.hgnetv2',
            'zoo.rtdetr.hybrid_encoder',
            'zoo.rtdetr.rtdetrv2_decoder',
            'zoo.rtdetr.matcher',
            'zoo.rtdetr.rtdetrv2_criterion',
        ),
        tuple(
            f'configs/rtdetrv2/rtdetrv2_{name}_coco.yml'
            for name in (
                *('r18vd_120e', 'r34vd_120e', 'r50vd_m_7x', 'r50vd_6x', 'r101vd_6x'),
                *('r18vd_dsp_3x', 'r34vd_dsp_1x', 'r50vd_m_dsp_3x', 'r50vd_dsp_1x'),
                *(f'r18vd_sp{points}_120e' for points in (1, 2, 3)),
                *('hgnetv2_l_6x', 'hgnetv2_x_6x'),
            )
        ),
        'RTDETRCriterionv2',
    ),
    'D-FINE': Repository(
        'D-FINE',
        'src',
        (
            'nn.backbone.hgnetv2',
            'zoo.dfine.hybrid_encoder',
            'zoo.dfine.dfine_decoder',
            'zoo.dfine.matcher',
            'zoo.dfine.dfine_criterion',
        ),
        tuple(f'configs/dfine/dfine_hgnetv2_{size}_coco.yml' for size in 'nsmlx'),
        'DFINECriterion',
    ),
    'DEIM': Repository(
        'DEIM',
        'engine',
        (
            'backbone.hgnetv2',
            'backbone.presnet',
            'deim.hybrid_encoder',
            'deim.dfine_decoder',
            'deim.rtdetrv2_decoder',
            'deim.matcher',
            'deim.deim_criterion',
        ),
        (
            *(f'configs/deim_dfine/deim_hgnetv2_{size}_coco.yml' for size in 'nsmlx'),
            *(
                f'configs/deim_rtdetrv2/deim_{name}_coco.yml'
                for name in ('r18vd_120e', 'r34vd_120e', 'r50vd_m_60e', 'r50vd_60e', 'r101vd_60e')
            ),
        ),
        'DEIMCriterion',
    ),
    'DEIMv2': Repository(
        'DEIMv2',
        'engine',
        (
            'backbone.hgnetv2',
            'backbone.dinov3_adapter',
            'deim.hybrid_encoder',
            'deim.lite_encoder',
            'deim.deim_decoder',
            'deim.matcher',
            'deim.deim_criterion',
        ),
        (
            *(f'configs/deimv2/deimv2_dinov3_{size}_coco.yml' for size in 'smlx'),
            *(
                f'configs/deimv2/deimv2_hgnetv2_{size}_coco.yml'
                for size in ('atto', 'femto', 'pico', 'n')
            ),
        ),
        'DEIMCriterion',
    ),
    'ECDet': Repository(
        'EdgeCrafter/ecdetseg',
        'engine',
        tuple(
            f'edgecrafter.{name}'
            for name in ('ecvit', 'hybrid_encoder', 'decoder', 'matcher', 'criterion')
        ),
        tuple(
            f'configs/{kind}/{kind}_{size}.yml' for kind in ('ecdet', 'ecseg') for size in 'smlx'
        ),
        'ECCriterion',
    ),
}


@contextmanager
def classes_of(folder: Path, repository: Repository) -> Iterator[dict[str, Any]]:
    """The classes of a clone by their names, whose registry and launcher are left out."""
    root, found = folder / repository.folder, dict[str, Any]()

    def add(kind: type) -> type:
        return found.setdefault(kind.__name__, kind)

    def register(*kinds: Any, **_: Any) -> Any:
        return add(kinds[0]) if kinds else add  # the first RT-DETR's has no arguments

    def package(name: str, **entries: Any) -> None:
        module = ModuleType(name)
        vars(module).update(entries)
        module.__path__ = [str(root / name.replace('.', '/'))]
        sys.modules[name] = module

    start = repository.package
    parents = {'.'.join(name.split('.')[:i]) for name in repository.modules for i in (1, 2)}
    single_process = dict(is_dist_available_and_initialized=lambda: False, get_world_size=lambda: 1)
    package(start)
    for name in sorted(parents - {*repository.modules}):
        package(f'{start}.{name}')
    package(f'{start}.core', register=register)
    package(f'{start}.misc')
    package(f'{start}.misc.dist_utils', **single_process)
    try:
        for name in repository.modules:
            importlib.import_module(f'{start}.{name}')
        yield found
    finally:
        for name in [name for name in sys.modules if name.split('.')[0] == start]:
            del sys.modules[name]


@contextmanager
def in_double() -> Iterator[None]:
    """New tensors are in float64."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def same_points() -> Iterator[None]:
    """Random numbers are a function of the shape: both codes compare masks at the same points."""
    rand = torch.rand

    def drawn(*shape: Any, **options: Any) -> Tensor:
        return rand(*shape, generator=torch.Generator().manual_seed(1), **options)

    torch.rand = drawn
    try:
        yield
    finally:
        torch.rand = rand


def settings_of(path: Path) -> dict[str, Any]:
    """A config with those that it includes."""
    own, merged = yaml.safe_load(path.read_text()), dict[str, Any]()
    for name in own.pop('__include__', []):
        _merge(merged, settings_of(path.parent / name))
    return _merge(merged, own)


def _merge(base: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in change.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), dict):
            _merge(base[name], value)
        else:
            base[name] = value
    return base


def built(kind: str, settings: dict[str, Any], classes: Mapping[str, Any]) -> nn.Module:
    """The class of a name, with the arguments of a config."""
    # The last layer predicts: RT-DETR's R50-m is evaluated after half of its layers.
    overrides = dict(pretrained=False, skip_load_backbone=True, eval_spatial_size=None, eval_idx=-1)
    shared = dict(num_classes=CLASSES, use_focal_loss=True)
    arguments = {**(settings.get(kind) or {})}
    init = classes[kind].__init__.__code__
    names = init.co_varnames[: init.co_argcount + init.co_kwonlyargcount]
    arguments |= {name: value for name, value in {**shared, **overrides}.items() if name in names}
    arguments.pop('weights_path', None)
    if isinstance(arguments.get('matcher'), dict):
        matcher = {**arguments['matcher']}
        arguments['matcher'] = built(matcher.pop('type'), {'HungarianMatcher': matcher}, classes)
    return classes[kind](**arguments)


def randomize(model: nn.Module) -> None:
    """Draw values that leave no parameter without effect."""
    generator = torch.Generator().manual_seed(0)
    for name, value in model.state_dict().items():
        noise = torch.randn(value.shape, generator=generator)
        if name.endswith('running_var'):
            value.copy_(noise.abs() + 0.5)
        elif value.is_floating_point() and not name.endswith(
            ('num_points_scale', 'up', 'reg_scale', 'periods', 'bias_mask')
        ):
            value += 0.03 * noise


def make_exact(model: nn.Module) -> None:
    """Compute in float64 what the authors' code has in float32, whatever the model has."""
    anchors = model.decoder._generate_anchors
    model.decoder._generate_anchors = partial(anchors, dtype=torch.float64)
    for module in model.modules():
        if hasattr(module, 'num_points_scale'):
            module.num_points_scale = 1 / module.num_points_scale.reciprocal().round()
        if hasattr(module, 'periods'):
            module.dtype = torch.float64
            module._init_weights()


def compare(path: Path, repository: Repository, classes: Mapping[str, Any]) -> list[float]:
    """The difference of each size, and of the losses."""
    settings = settings_of(path)
    parts = settings[settings['model']]
    torch.manual_seed(0)
    model = nn.Module()
    for name in ('backbone', 'encoder', 'decoder'):
        model.add_module(name, built(parts[name], settings, classes))
    with torch.no_grad():
        randomize(model)
        for module in model.modules():
            if hasattr(module, 'bias_mask'):  # of DINOv3, whose keys have no bias
                module.bias_mask.fill_(1).chunk(3)[1].zero_()
    state = model.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        # The name distinguishes models with the same tensors.
        file = Path(folder, f'{path.stem}.pth')
        torch.save(dict(model=state, ema=dict(module=state, updates=1), last_epoch=1), file)
        ours = load(file, device='cpu').model.double().eval()
    model.double().eval()
    with torch.no_grad(), in_double():
        make_exact(model)
    differences = []
    for image in images(SIZES):
        with torch.no_grad(), doubled(), in_double():
            maps = model.encoder(model.backbone(image))
            feats, more = ours.extract_feat(image), ()
            if masks := getattr(model.decoder.decoder, 'segmentation_head', None):
                masks.image_size = image.shape[2:]
                more = None, maps[0]
            wanted = model.decoder(maps, *more)
            found = ours.bbox_head(feats)
            pairs = [(found.logits[-1], 'pred_logits'), (found.boxes[-1], 'pred_boxes')]
            if masks:
                pairs.append((ours.bbox_head.masks_of(feats, found.features[-1]), 'pred_masks'))
        differences.append(max(apart(mine, wanted[name]) for mine, name in pairs))
    if repository.criterion:
        differences.append(losses_apart(ours, built(repository.criterion, settings, classes)))
    return differences


LABELS = [[1, 2, 2], [], [0]]
BOXES = [
    [[0.3, 0.3, 0.2, 0.3], [0.6, 0.5, 0.4, 0.4], [0.5, 0.8, 0.3, 0.2]],
    [],
    [[0.5, 0.6, 0.5, 0.3]],
]


def losses_apart(model: nn.Module, criterion: nn.Module) -> float:
    """The largest difference of a loss of the head here and of the authors' criterion."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    head, side = model.bbox_head.train(), 256
    labels = [torch.tensor(one, dtype=torch.long) for one in LABELS]
    boxes = [torch.tensor(one, dtype=torch.float64).view(-1, 4) for one in BOXES]
    random = np.random.default_rng(0)
    masks = [random.integers(0, 2, (len(one), side, side), np.uint8) for one in LABELS]
    samples = [
        DetDataSample(
            metainfo=dict(img_shape=(side, side), batch_input_shape=(side, side)),
            gt_instances=InstanceData(
                labels=one,
                bboxes=bbox_cxcywh_to_xyxy(box) * side,
                masks=BitmapMasks(mask, side, side),
            ),
        )
        for one, box, mask in zip(labels, boxes, masks, strict=True)
    ]
    recorded: list[Any] = []
    forward = head.forward

    def recording_forward(*args: Any) -> QueryOutputs:
        outputs = forward(*args)
        recorded.extend((outputs, args[2]))  # args[2]: the noised objects
        return outputs

    head.forward = recording_forward
    with torch.no_grad(), doubled(), in_double(), same_points():
        losses = head.loss(
            model.extract_feat(images([(side, side)])[0].expand(3, -1, -1, -1)), samples
        )
    outputs, noised = recorded
    number = noised.labels.shape[1]
    given = as_theirs(outputs, noised, number, head)
    targets = [
        dict(labels=one, boxes=box, masks=torch.from_numpy(mask).bool())
        for one, box, mask in zip(labels, boxes, masks, strict=True)
    ]
    with doubled(), in_double(), same_points():
        wanted = criterion.double()(given, targets)
    last = len(outputs.logits) - 1
    names = {'': '', 'first_': '_pre', 'enc_': '_enc_0', 'dn_first_': '_dn_pre'}
    names |= {f'd{i}.': f'_aux_{i}' for i in range(last)}
    names |= {f'dn_d{i}.': f'_dn_{i}' for i in range(last)} | {'dn_': f'_dn_{last}'}
    kinds = dict(bbox='bbox', iou='giou', fgl='fgl', ddf='ddf', mask='mask_ce', dice='mask_dice')
    kinds['cls'] = next(name for name in ('mal', 'vfl') if f'loss_{name}' in wanted)
    worst, compared = 0.0, 0
    for start, end in names.items():
        for own, other in kinds.items():
            if f'{start}loss_{own}' in losses:
                found = losses[f'{start}loss_{own}']
                value = wanted.get(f'loss_{other}{end}', 0)  # the lite models lack two
                worst = max(worst, abs(float(found - value)))
                compared += 1
    assert compared == len(losses)
    return worst


def as_theirs(
    outputs: QueryOutputs, noised: NoisedObjects, number: int, head: nn.Module
) -> dict[str, Any]:
    """Our outputs as the authors' criterion takes them."""

    def simple(logits: Tensor, boxes: Tensor) -> dict[str, Tensor]:
        return dict(pred_logits=logits, pred_boxes=boxes.clamp(0, 1))

    def masks(i: int, part: slice) -> dict[str, Tensor]:
        if outputs.mask_elements is None:
            return {}
        elements = outputs.mask_elements[i]
        logits = head.masks.product(elements.flatten(2), outputs.mask_queries[i][:, part])
        return dict(pred_masks=logits.unflatten(2, elements.shape[2:]))

    def layer(i: int, part: slice) -> dict[str, Tensor]:
        return dict(
            simple(outputs.logits[i][:, part], outputs.boxes[i][:, part]),
            **masks(i, part),
            **sides(i, part),
        )

    def sides(i: int, part: slice) -> dict[str, Tensor]:
        if outputs.sides is None:
            return {}
        return dict(
            pred_corners=outputs.sides[i][:, part],
            ref_points=outputs.first_boxes[:, part],
            teacher_corners=outputs.sides[-1][:, part],
            teacher_logits=outputs.logits[-1][:, part],
        )

    own, noise, every = slice(number, None), slice(None, number), range(len(outputs.logits))
    last = {name: value for name, value in layer(every[-1], own).items() if 'teacher' not in name}
    counts = [len(one) * noised.groups for one in LABELS]
    positive = (noised.queries % number).split(counts)
    noised_layers = [layer(i, noise) for i in every]
    given = dict(
        last,
        aux_outputs=[layer(i, own) for i in every[:-1]],
        enc_aux_outputs=[simple(outputs.proposed_logits, outputs.proposed_boxes)],
        enc_meta=dict(class_agnostic=False),
        dn_outputs=noised_layers,
        dn_aux_outputs=noised_layers,  # the same by RT-DETR's name
        dn_meta=dict(dn_positive_idx=positive, dn_num_group=noised.groups),
    )
    if outputs.sides is None:
        return given
    return given | dict(
        up=head.up.double(),
        reg_scale=head.scale.double(),
        pre_outputs=simple(outputs.first_logits[:, own], outputs.first_boxes[:, own])
        | masks(every[-1], own),
        dn_pre_outputs=simple(outputs.first_logits[:, noise], outputs.first_boxes[:, noise])
        | masks(every[-1], noise),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('folder', type=Path, help='with the clones')
    parser.add_argument('--only', nargs='+', default=['.yml'], help='parts of names of configs')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    worst = 0.0
    for repository in REPOSITORIES.values():
        wanted = [
            args.folder / repository.folder / name
            for name in repository.configs
            if any(part in name for part in args.only)
        ]
        if not wanted:
            continue
        with classes_of(args.folder, repository) as classes:
            for path in wanted:
                found = compare(path, repository, classes)
                print(f'{path.stem}:', *(f'{one:.1e}' for one in found), flush=True)
                worst = max(worst, *found)
    print(f'The largest difference is {worst:.1e} of the largest value; allowed are {LIMIT:.0e}.')
    sys.exit(worst > LIMIT)


if __name__ == '__main__':
    main()
