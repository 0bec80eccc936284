"""The losses of a step equal those of transformers for the same outputs, matches and noise.

transformers' criterion is called with each layer's own boxes and distributions, as in the authors'
code; transformers itself pairs the boxes of a layer with the distributions of the next. As in the
authors' code, the distillation of noised queries is balanced by the counts of the other queries.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from gpu_waits import Waits
from mmengine.structures import InstanceData
from rejection import rejects
from torch import Tensor

from vit_plugin.projects.d_fine.d_fine_head import DFINEHead
from vit_plugin.projects.d_fine.noised_detr_head import QueryOutputs
from vit_plugin.projects.d_fine.noised_objects import NoisedObjects, make_noised_objects
from vit_plugin.projects.d_fine.proposing_head import ProposingHead
from vit_plugin.projects.d_fine.rt_detr_head import RTDETRHead

pytestmark = pytest.mark.filterwarnings('ignore')
CLASSES, QUERIES, DIMS, BINS = 4, 6, 16, 8
SIZE = (48, 64)
# Labels and boxes (center, width and height as fractions) of three images, one without objects.
LABELS = [[1, 2, 2], [], [0]]
BOXES = [
    [[0.3, 0.3, 0.2, 0.3], [0.6, 0.5, 0.4, 0.4], [0.5, 0.8, 0.3, 0.2]],
    [],
    [[0.5, 0.6, 0.5, 0.3]],
]
LOSSES = {
    'rt_detr': dict(type='vit_plugin.OverlapVarifocalLoss'),
    'd_fine': dict(type='vit_plugin.OverlapVarifocalLoss'),
    'deimv2': dict(type='vit_plugin.MatchabilityAwareLoss'),
}


def head(variant: str = 'd_fine', **kwargs: Any) -> ProposingHead:
    """A small head with random weights in float64, so that losses can be compared exactly."""
    torch.manual_seed(0)
    head_class, class_options = RTDETRHead, {}
    if variant != 'rt_detr':
        head_class = DFINEHead
        class_options = dict(distributions=dict(bins=BINS, quality_channels=8))
    options = (
        dict(
            num_classes=CLASSES,
            num_queries=QUERIES,
            in_channels=(DIMS, DIMS),
            embed_dims=DIMS,
            variant=variant,
            decoder=dict(num_layers=3, num_heads=2, num_points=(2, 3), feedforward_channels=16),
            **class_options,
            noise=dict(number=6),
            loss_cls=LOSSES[variant],
        )
        | kwargs
    )
    built = head_class(**options).double().train()
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return built


def maps(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Feature maps of three images in two levels."""
    torch.manual_seed(1)
    return [torch.randn(3, DIMS, 6 // k, 8 // k, dtype=dtype) for k in (1, 2)]


def samples(dtype: torch.dtype = torch.float64) -> list:
    """The three images with their objects, as MMDetection has them."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy

    ends = torch.tensor([SIZE[1], SIZE[0]] * 2, dtype=dtype)
    return [
        DetDataSample(
            metainfo=dict(img_shape=SIZE, batch_input_shape=SIZE),
            gt_instances=InstanceData(
                labels=torch.tensor(labels, dtype=torch.long),
                bboxes=bbox_cxcywh_to_xyxy(torch.tensor(boxes, dtype=dtype).view(-1, 4)) * ends,
            ),
        )
        for labels, boxes in zip(LABELS, BOXES, strict=True)
    ]


def step(built: ProposingHead, monkeypatch: Any) -> tuple[dict[str, Tensor], QueryOutputs, Any]:
    """The losses of a step, with the outputs and noised objects of its forward."""
    outputs, noised = None, None
    forward = built.forward

    def record(*args: Any) -> QueryOutputs:
        nonlocal outputs, noised
        outputs, noised = forward(*args), args[2]
        return outputs

    monkeypatch.setattr(built, 'forward', record)
    torch.manual_seed(2)
    losses = built.loss(maps(), samples())
    return losses, outputs, noised


def criterion(variant: str, joint: bool) -> Any:
    """transformers' criterion; ``joint`` matches all layers together."""
    pytest.importorskip('transformers', '5', 'needs transformers 5')
    from transformers.loss.loss_d_fine import DFineLoss
    from transformers.loss.loss_deimv2 import Deimv2Loss
    from transformers.loss.loss_rt_detr import RTDetrLoss

    weights = dict(weight_loss_bbox=5.0, weight_loss_giou=2.0, weight_loss_fgl=0.15)
    config = SimpleNamespace(
        **weights,
        matcher_class_cost=2.0,
        matcher_bbox_cost=5.0,
        matcher_giou_cost=2.0,
        matcher_alpha=0.25,
        matcher_gamma=2.0,
        use_focal_loss=True,
        num_labels=CLASSES,
        eos_coefficient=1e-4,
        focal_loss_alpha=0.75,
        focal_loss_gamma=1.5 if variant == 'deimv2' else 2.0,
        weight_loss_vfl=1.0,
        weight_loss_mal=1.0,
        weight_loss_ddf=1.5,
        max_num_bins=BINS,
        reg_scale=4.0,
        up=0.5,
        mal_alpha=None,
        use_dense_one_to_one=joint,
    )
    base = {'deimv2': Deimv2Loss, 'd_fine': DFineLoss, 'rt_detr': RTDetrLoss}[variant]

    class AsAuthors(base):
        """Keeps the numbers of positive and negative queries that are set first.

        The criterion sets them for ordinary queries first. So those balance noised queries, too.
        """

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in ('num_pos', 'num_neg') or getattr(self, name, None) is None:
                super().__setattr__(name, value)

    return AsAuthors(config).double()


def criterion_inputs(outputs: QueryOutputs, noised: NoisedObjects | None) -> dict[str, Any]:
    """Our outputs in the form that transformers' criterion takes. Noised queries come first."""
    num_noised = noised.labels.shape[1] if noised else 0

    def simple(logits: Tensor, boxes: Tensor) -> dict[str, Tensor]:
        """The outputs of a layer or of the proposals, without distributions."""
        return dict(logits=logits, pred_boxes=boxes.clamp(0, 1))

    def layer(i: int, part: slice) -> dict[str, Tensor]:
        """The outputs of layer ``i`` for some of the queries."""
        if outputs.edge_logits is None:
            return simple(outputs.logits[i][:, part], outputs.boxes[i][:, part])
        return dict(
            simple(outputs.logits[i][:, part], outputs.boxes[i][:, part]),
            pred_corners=outputs.edge_logits[i][:, part],
            ref_points=outputs.first_boxes[:, part].detach(),
            teacher_corners=outputs.edge_logits[-1][:, part],
            teacher_logits=outputs.logits[-1][:, part],
        )

    def first(part: slice) -> list[dict[str, Tensor]]:
        logits, boxes = outputs.first_logits, outputs.first_boxes
        return [] if logits is None else [simple(logits[:, part], boxes[:, part])]

    ordinary, noise = slice(num_noised, None), slice(None, num_noised)
    layers = range(len(outputs.logits))
    arguments = dict(
        layer(layers[-1], ordinary),
        auxiliary_outputs=[
            *(layer(i, ordinary) for i in layers[:-1]),
            *first(ordinary),
            simple(outputs.proposed_logits, outputs.proposed_boxes),
        ],
    )
    if noised:
        counts = [len(labels) * noised.groups for labels in LABELS]
        positive = (noised.queries % num_noised).split(counts)
        arguments |= dict(
            dn_auxiliary_outputs=[
                *(layer(i, noise) for i in layers),
                *first(noise),
            ],
            denoising_meta_values=dict(dn_num_group=noised.groups, dn_positive_idx=positive),
        )
    return arguments


def loss_names(built: ProposingHead, noised: bool) -> dict[str, str]:
    """For each group of losses, the beginning of our names and the end of transformers'."""
    last = len(built.layers) - 1
    ends = {'': '', **{f'd{i}.': f'_aux_{i}' for i in range(last)}}
    if isinstance(built, DFINEHead):
        ends |= {'first_': f'_aux_{last}', 'enc_': f'_aux_{last + 1}'}
    else:
        ends |= {'enc_': f'_aux_{last}'}
    if noised:
        ends |= {f'dn_d{i}.': f'_dn_{i}' for i in range(last)}
        ends |= {'dn_': f'_dn_{last}', 'dn_first_': f'_dn_{last + 1}'}
    return ends


@pytest.mark.parametrize('noise', [6, 0])
@pytest.mark.parametrize(
    ('variant', 'joint'),
    [('d_fine', False), ('deimv2', False), ('deimv2', True), ('rt_detr', False)],
)
def test_losses_equal_transformers(variant, joint, noise, monkeypatch):
    their_criterion = criterion(variant, joint)
    built = head(variant, joint_matching=joint, noise=dict(number=noise))
    losses, outputs, noised = step(built, monkeypatch)
    targets = [
        dict(
            class_labels=torch.tensor(labels, dtype=torch.long),
            boxes=torch.tensor(boxes, dtype=torch.float64).view(-1, 4),
        )
        for labels, boxes in zip(LABELS, BOXES, strict=True)
    ]
    from benchmarks.detectors_reference import doubled

    monkeypatch.setattr(torch, 'float', torch.float64)  # transformers computes some in float32
    torch.set_default_dtype(torch.float64)
    try:
        with doubled():
            expected = their_criterion(criterion_inputs(outputs, noised), targets)
    finally:
        torch.set_default_dtype(torch.float32)
    # The ends of our names -> of transformers'.
    their_names = dict(
        cls='mal' if variant == 'deimv2' else 'vfl', bbox='bbox', iou='giou', fgl='fgl', ddf='ddf'
    )
    compared = 0
    for start, end in loss_names(built, bool(noise)).items():
        for our_name, their_name in their_names.items():
            value = expected.get(f'loss_{their_name}{end}')
            if value is None or f'{start}loss_{our_name}' not in losses:
                # A loss that we leave out must be 0 in transformers.
                assert value is None or not value.item(), (start, our_name)
                continue
            loss = losses[f'{start}loss_{our_name}']
            assert abs(loss.item() - value.item()) < 1e-9, (start, our_name)
            compared += 1
    assert compared == len(losses)


def test_noise_equals_transformers():
    """Labels, boxes, attention masks and groups, without random changes."""
    pytest.importorskip('transformers', '5', 'needs transformers 5')
    from transformers.models.rt_detr import modeling_rt_detr as rt_detr

    labels = [torch.tensor(image, dtype=torch.long) for image in LABELS]
    boxes = [torch.tensor(image).view(-1, 4) for image in BOXES]
    ours = make_noised_objects(labels, boxes, CLASSES, max_pairs=6, label_noise=0, box_noise=0)
    their_labels, their_boxes, mask, meta = rt_detr.get_contrastive_denoising_training_group(
        [
            dict(class_labels=image_labels, boxes=image_boxes)
            for image_labels, image_boxes in zip(labels, boxes, strict=True)
        ],
        CLASSES,
        QUERIES,
        lambda values: values,
        6,
        0,
        0,
    )
    assert torch.equal(ours.labels, their_labels.long())
    torch.testing.assert_close(ours.boxes, their_boxes)
    assert torch.equal(ours.attention_mask(QUERIES), mask.isinf())
    assert ours.groups == meta['dn_num_group']
    num_noised = ours.labels.shape[1]
    queries = [index + i * num_noised for i, index in enumerate(meta['dn_positive_idx'])]
    assert torch.equal(ours.queries, torch.cat(queries))


def test_noise_stays_within_its_limits():
    torch.manual_seed(0)
    box = torch.tensor([[0.5, 0.5, 0.2, 0.4]]).expand(50, 4)
    noised = make_noised_objects([torch.zeros(50, dtype=torch.long)], [box], 3, 50)
    left = noised.boxes[0, :, 0] - noised.boxes[0, :, 2] / 2
    shift = (left - 0.4).abs() / 0.1  # of the left side, in halves of the width
    # The first half of the queries are positive.
    assert (shift[:50] <= 1 + 1e-5).all()
    assert ((shift[50:] >= 1 - 1e-5) & (shift[50:] <= 2 + 1e-5)).all()
    # A random label replaces a quarter of the labels, and may be the same.
    assert 0 < (noised.labels != 0).sum() < len(noised.labels[0]) / 2


def test_images_without_objects_have_finite_losses():
    built = head()
    empty = samples()
    for sample in empty:
        sample.gt_instances = sample.gt_instances[:0]
    losses = built.loss(maps(), empty)
    assert all(value.isfinite().all() for value in losses.values())
    assert losses['loss_bbox'] == 0
    sum(losses.values()).backward()


@pytest.mark.parametrize('joint', [False, True])
def test_ious_of_a_matching_are_computed_once(joint, monkeypatch):
    built = head(joint_matching=joint)
    ious, calls = built._ious, 0

    def count(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return ious(*args)

    monkeypatch.setattr(built, '_ious', count)
    losses, *_ = step(built, monkeypatch)
    is_noised = [name.startswith('dn_') for name in losses if name.endswith('loss_cls')]
    expected = len(is_noised)
    if joint:  # boxes have other matches than classes
        expected += is_noised.count(False)
    assert calls == expected


@pytest.mark.parametrize('variant', ['rt_detr', 'd_fine'])
def test_heads_must_divide_the_channels(variant):
    with rejects('decoder: num_heads=3 must divide 16 channels'):
        head(variant, decoder=dict(num_heads=3))


@pytest.mark.parametrize('name', ['up', 'scale'])
def test_distributions_without_width_raise(name):
    with rejects(f'distributions.{name}=0.0 must be greater than 0'):
        head(distributions={name: 0.0})


def test_a_step_waits_only_for_its_matching():
    """The copy of all costs is the only operator that needs values of a tensor on the CPU."""
    built = head('deimv2').float()
    levels, data = maps(torch.float32), samples(torch.float32)
    with Waits() as waits:
        built.loss(levels, data)
    assert not waits.names
