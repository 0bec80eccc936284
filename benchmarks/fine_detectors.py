"""Check RT-DETR, D-FINE, DEIM, DEIMv2, ECDet and ECSeg against their authors' code, in float64.

    python benchmarks fine_detectors FOLDER [--only NAME ...]

``FOLDER`` has clones of lyuwenyu/RT-DETR, Peterande/D-FINE, and DEIM, DEIMv2 and EdgeCrafter of
Intellindust-AI-Lab, in folders of the repositories' names. The authors' classes are built by their
configs with random weights; the rest of their packages is replaced by stubs. A checkpoint like that
of their training, with EMA weights, is read by this package as ``infer`` does. Logits, boxes and
masks are compared for images of two sizes, and all losses of a step for the same outputs, noise and
sampled points. Only squares are compared: on rectangles the authors' code mixes up the sine
positions. The exit status is 1 if a value differs.
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

import vit_plugin.detection  # noqa: F401  must be imported before MMDetection
from benchmarks.detectors import LIMIT
from benchmarks.detectors_reference import doubled, random_images
from benchmarks.measuring.differences import nan_as_inf, relative_difference
from vit_plugin.inference.load import load
from vit_plugin.projects.d_fine.noised_detr_head import QueryOutputs
from vit_plugin.projects.d_fine.noised_objects import NoisedObjects

SIZES = [(256, 256), (320, 320)]
NUM_CLASSES = 80


class Repository(NamedTuple):
    """The parts of an authors' repository that are compared.

    Attributes:
        folder: the folder in the clone that contains the package.
        package: the package's name.
        modules: the modules with classes that configs name.
        configs: the paths of the configs below ``folder``.
        criterion: the name of the class of its losses. Empty: losses are not compared.
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
    """Import the classes of a clone, by their names, for the time of this context.

    Stubs replace the packages around them, with the registry and the utilities for several
    processes, whose imports would need more libraries.
    """
    root, classes = folder / repository.folder, dict[str, Any]()

    def add(cls: type) -> type:
        return classes.setdefault(cls.__name__, cls)

    def register(*decorated: Any, **_: Any) -> Any:
        # The first RT-DETR writes @register, the others @register().
        return add(decorated[0]) if decorated else add

    def add_stub(name: str, **attributes: Any) -> None:
        module = ModuleType(name)
        vars(module).update(attributes)
        # Submodules are imported from the clone.
        module.__path__ = [str(root / name.replace('.', '/'))]
        sys.modules[name] = module

    start = repository.package
    parents = {'.'.join(name.split('.')[:i]) for name in repository.modules for i in (1, 2)}
    single_process = dict(is_dist_available_and_initialized=lambda: False, get_world_size=lambda: 1)
    add_stub(start)
    for name in sorted(parents - {*repository.modules}):
        add_stub(f'{start}.{name}')
    add_stub(f'{start}.core', register=register)
    add_stub(f'{start}.misc')
    add_stub(f'{start}.misc.dist_utils', **single_process)
    try:
        for name in repository.modules:
            importlib.import_module(f'{start}.{name}')
        yield classes
    finally:
        for name in [name for name in sys.modules if name.split('.')[0] == start]:
            del sys.modules[name]


@contextmanager
def float64_by_default() -> Iterator[None]:
    """New tensors are in float64 within this context."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def same_points() -> Iterator[None]:
    """Let ``torch.rand`` depend only on the shape, so that both codes sample the same points."""
    rand = torch.rand

    def drawn(*shape: Any, **options: Any) -> Tensor:
        return rand(*shape, generator=torch.Generator().manual_seed(1), **options)

    torch.rand = drawn
    try:
        yield
    finally:
        torch.rand = rand


def read_yaml_config(path: Path) -> dict[str, Any]:
    """A config merged into those that it includes."""
    own, merged = yaml.safe_load(path.read_text()), dict[str, Any]()
    for name in own.pop('__include__', []):
        _merge(merged, read_yaml_config(path.parent / name))
    return _merge(merged, own)


def _merge(base: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in change.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), dict):
            _merge(base[name], value)
        else:
            base[name] = value
    return base


def build(name: str, settings: dict[str, Any], classes: Mapping[str, Any]) -> nn.Module:
    """Build the class of this name with its arguments in a config."""
    # eval_idx=-1: the last layer predicts. RT-DETR's R50-m would be evaluated after half of them.
    overrides = dict(pretrained=False, skip_load_backbone=True, eval_spatial_size=None, eval_idx=-1)
    shared = dict(num_classes=NUM_CLASSES, use_focal_loss=True)
    arguments = {**(settings.get(name) or {})}
    init = classes[name].__init__.__code__
    accepted = init.co_varnames[: init.co_argcount + init.co_kwonlyargcount]
    arguments |= {key: value for key, value in {**shared, **overrides}.items() if key in accepted}
    arguments.pop('weights_path', None)
    if isinstance(arguments.get('matcher'), dict):
        matcher = {**arguments['matcher']}
        arguments['matcher'] = build(matcher.pop('type'), {'HungarianMatcher': matcher}, classes)
    return classes[name](**arguments)


def randomize(model: nn.Module) -> None:
    """Add noise to every weight, since some begin at zero, which would hide differences.

    Constants of the architecture among the buffers are kept.
    """
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
    """Compute in float64 what the authors' code computes in float32 in a model of any type."""
    anchors = model.decoder._generate_anchors
    model.decoder._generate_anchors = partial(anchors, dtype=torch.float64)
    for module in model.modules():
        if hasattr(module, 'num_points_scale'):
            # The exact reciprocal of the number of points.
            module.num_points_scale = 1 / module.num_points_scale.reciprocal().round()
        if hasattr(module, 'periods'):
            module.dtype = torch.float64
            module._init_weights()  # computes the periods again


def compare(path: Path, repository: Repository, classes: Mapping[str, Any]) -> list[float]:
    """The difference of the outputs at each size, and of the losses."""
    settings = read_yaml_config(path)
    parts = settings[settings['model']]
    torch.manual_seed(0)
    model = nn.Module()
    for name in ('backbone', 'encoder', 'decoder'):
        model.add_module(name, build(parts[name], settings, classes))
    with torch.no_grad():
        randomize(model)
        for module in model.modules():
            if hasattr(module, 'bias_mask'):  # DINOv3 masks the bias of the keys
                module.bias_mask.fill_(1).chunk(3)[1].zero_()
    state = model.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        # The file's name distinguishes models with the same tensors.
        file = Path(folder, f'{path.stem}.pth')
        torch.save(dict(model=state, ema=dict(module=state, updates=1), last_epoch=1), file)
        ours = load(file, device='cpu').model.double().eval()
    model.double().eval()
    with torch.no_grad(), float64_by_default():
        make_exact(model)
    differences = []
    for image in random_images(SIZES):
        with torch.no_grad(), doubled(), float64_by_default():
            maps = model.encoder(model.backbone(image))
            feats, mask_arguments = ours.extract_feat(image), ()
            if mask_head := getattr(model.decoder.decoder, 'segmentation_head', None):
                mask_head.image_size = image.shape[2:]
                mask_arguments = None, maps[0]
            expected = model.decoder(maps, *mask_arguments)
            found = ours.bbox_head(feats)
            pairs = [(found.logits[-1], 'pred_logits'), (found.boxes[-1], 'pred_boxes')]
            if mask_head:
                pairs.append((ours.bbox_head.masks_of(feats, found.features[-1]), 'pred_masks'))
        differences.append(
            max(relative_difference(actual, expected[name]) for actual, name in pairs)
        )
    if repository.criterion:
        differences.append(loss_difference(ours, build(repository.criterion, settings, classes)))
    return differences


# Objects of three images: labels, and boxes (center x, center y, width, height) in shares.
LABELS = [[1, 2, 2], [], [0]]
BOXES = [
    [[0.3, 0.3, 0.2, 0.3], [0.6, 0.5, 0.4, 0.4], [0.5, 0.8, 0.3, 0.2]],
    [],
    [[0.5, 0.6, 0.5, 0.3]],
]


def loss_difference(model: nn.Module, criterion: nn.Module) -> float:
    """The largest difference between a loss of our head and of the authors' criterion.

    The criterion gets the outputs of our head, with the same noised objects.
    """
    from mmdet.structures import DetDataSample
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    head, side = model.bbox_head.train(), 256
    labels = [torch.tensor(one, dtype=torch.long) for one in LABELS]
    boxes = [torch.tensor(one, dtype=torch.float64).view(-1, 4) for one in BOXES]
    rng = np.random.default_rng(0)
    masks = [rng.integers(0, 2, (len(one), side, side), np.uint8) for one in LABELS]
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
    with torch.no_grad(), doubled(), float64_by_default(), same_points():
        losses = head.loss(
            model.extract_feat(random_images([(side, side)])[0].expand(3, -1, -1, -1)), samples
        )
    outputs, noised = recorded
    num_noised = noised.labels.shape[1]
    given = as_theirs(outputs, noised, num_noised, head)
    targets = [
        dict(labels=one, boxes=box, masks=torch.from_numpy(mask).bool())
        for one, box, mask in zip(labels, boxes, masks, strict=True)
    ]
    with doubled(), float64_by_default(), same_points():
        expected = criterion.double()(given, targets)
    last = len(outputs.logits) - 1
    # Prefix of our losses -> suffix of the authors'.
    names = {'': '', 'first_': '_pre', 'enc_': '_enc_0', 'dn_first_': '_dn_pre'}
    names |= {f'd{i}.': f'_aux_{i}' for i in range(last)}
    names |= {f'dn_d{i}.': f'_dn_{i}' for i in range(last)} | {'dn_': f'_dn_{last}'}
    # Our name of a loss -> the authors'.
    kinds = dict(bbox='bbox', iou='giou', fgl='fgl', ddf='ddf', mask='mask_ce', dice='mask_dice')
    kinds['cls'] = next(name for name in ('mal', 'vfl') if f'loss_{name}' in expected)
    worst, compared = 0.0, 0
    for start, end in names.items():
        for own, other in kinds.items():
            if f'{start}loss_{own}' in losses:
                found = losses[f'{start}loss_{own}']
                value = expected.get(f'loss_{other}{end}', 0)  # the lite models lack two
                difference = abs(float(found - value))
                worst = max(worst, nan_as_inf(difference))
                compared += 1
    assert compared == len(losses)  # no loss is left out
    return worst


def as_theirs(
    outputs: QueryOutputs, noised: NoisedObjects, num_noised: int, head: nn.Module
) -> dict[str, Any]:
    """Our outputs as the authors' criterion takes them.

    The first ``num_noised`` queries of each image are the noised objects.
    """

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
            **distributions(i, part),
        )

    def distributions(i: int, part: slice) -> dict[str, Tensor]:
        if outputs.edge_logits is None:
            return {}
        return dict(
            pred_corners=outputs.edge_logits[i][:, part],
            ref_points=outputs.first_boxes[:, part],
            teacher_corners=outputs.edge_logits[-1][:, part],
            teacher_logits=outputs.logits[-1][:, part],
        )

    own, noise, every = slice(num_noised, None), slice(None, num_noised), range(len(outputs.logits))
    last = {name: value for name, value in layer(every[-1], own).items() if 'teacher' not in name}
    counts = [len(one) * noised.groups for one in LABELS]
    positive = (noised.queries % num_noised).split(counts)
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
    if outputs.edge_logits is None:
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
    names = [name for repository in REPOSITORIES.values() for name in repository.configs]
    if unknown := [part for part in args.only if not any(part in name for name in names)]:
        parser.error(f'--only {unknown[0]}: it is in none of {", ".join(names)}')
    warnings.simplefilter('ignore')
    worst = 0.0
    for repository in REPOSITORIES.values():
        paths = [
            args.folder / repository.folder / name
            for name in repository.configs
            if any(part in name for part in args.only)
        ]
        if not paths:
            continue
        with classes_of(args.folder, repository) as classes:
            for path in paths:
                differences = compare(path, repository, classes)
                print(f'{path.stem}:', *(f'{one:.1e}' for one in differences), flush=True)
                worst = max(worst, *differences)
    print(f'The largest difference is {worst:.1e} of the largest value; allowed are {LIMIT:.0e}.')
    sys.exit(worst > LIMIT)


if __name__ == '__main__':
    main()
