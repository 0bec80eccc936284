"""Distillation losses equal those of timm's tasks or the papers' formulas; teachers stay frozen."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
import torch.distributed as dist
import torch.nn.functional as F
from mmengine.registry import MODELS, init_default_scope
from mmpretrain.structures import DataSample
from model_states import assert_all_learn, assert_same_state
from ranks import on_ranks
from rejection import rejects
from timm.task import FeatureDistillationTask, LogitDistillationTask, TokenDistillationTask
from tiny_models import TINY, TINY_SIZES
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from wrong_values import RIGHT

from vit_plugin.engine.sharding import Sharding, parts_to_shard, shard
from vit_plugin.models.loading import load_weights
from vit_plugin.projects.distillation.compared_outputs import outputs_of
from vit_plugin.projects.distillation.distiller import Distiller

pytestmark = pytest.mark.filterwarnings('ignore')
VIT = dict(type='vit_plugin.VisionTransformer', arch=TINY, img_size=32)
PIXELS = dict(mean=[127.5] * 3, std=[63.75] * 3, to_rgb=True)
LABELS = torch.tensor([0, 3, 1, 2])  # of the four images
TEST_VIT = 'timm://test_vit.r160_in1k'
# Arguments of students with the width and the image size of timm's test_vit, the teacher.
SIZES: dict[str, Any] = {
    'vit': dict(arch='timm://test_vit', img_size=160),
    'distilled': dict(
        arch=dict(TINY, embed_dims=64, patch_size=16),
        img_size=160,
        encoder=dict(dist_token=1),
        out_type='raw',
    ),
}


@pytest.fixture(autouse=True)
def scope(monkeypatch) -> None:
    """Use MMPretrain's scope, and random weights instead of downloads."""
    init_default_scope('mmpretrain')

    def weights(name: str) -> dict[str, Tensor]:
        torch.manual_seed(5)
        return timm_model(name).state_dict()

    monkeypatch.setattr('vit_plugin.weights.opening.download_timm', weights)


def timm_model(name: str, **options: Any) -> nn.Module:
    """A model of timm with random weights in its classifier."""
    model = timm.create_model(name, **options)
    for parameter in model.get_classifier().parameters():
        nn.init.normal_(parameter)
    return model


def samples() -> list[DataSample]:
    return [DataSample().set_gt_label(label) for label in LABELS]


def head(num_classes: int = 1000, in_channels: int = 64, **options: Any) -> dict[str, Any]:
    """The config of a classifier's head, by default with the sizes of the teacher."""
    return dict(
        options,
        type=options.get('type', 'vit_plugin.ViTClsHead'),
        num_classes=num_classes,
        in_channels=in_channels,
        loss=dict(type='CrossEntropyLoss'),
    )


def build(teacher: Any, losses: list, backbone: dict = VIT, **options: Any) -> Distiller:
    cfg = dict(type='vit_plugin.Distiller', teacher=teacher, losses=losses, backbone=backbone)
    return MODELS.build(dict(cfg, data_preprocessor=dict(PIXELS), **options))


def loss(name: str, **options: Any) -> dict[str, Any]:
    """The config of a distillation loss."""
    return dict(options, type=f'vit_plugin.{name}Distillation')


def in_double(model: Distiller) -> Distiller:
    """Give the head random weights, and convert the model to float64 for exact comparisons."""
    for parameter in model.head.parameters() if model.head else ():
        nn.init.normal_(parameter)
    return model.double().eval()  # without dropout


class AsTimm(nn.Module):
    """A student with the methods and attributes that timm's tasks use."""

    def __init__(self, model: Distiller) -> None:
        super().__init__()
        self.model, self.num_classes, self.in_chans = model, model.head.num_classes, 3
        self.num_features = model.head.in_channels
        self.pretrained_cfg = dict(mean=(0.5,) * 3, std=(0.25,) * 3)

    def forward_features(self, images: Tensor) -> Tensor:
        return self.model.extract_feat(images)[-1]

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        return x if pre_logits else self.model.head([x])

    def set_distilled_training(self, enable: bool) -> None:
        pass

    def forward(self, images: Tensor) -> Any:
        if hasattr(self.model.head, 'classify'):
            return self.model.head.classify(self.model.extract_feat(images))
        return self.model.head(self.model.extract_feat(images))


def run_task(model: Distiller, task_class: type, **options: Any) -> tuple[nn.Module, dict]:
    """A distillation task of timm with the same student and teacher, and its losses."""
    teacher = timm_model('test_vit.r160_in1k')
    teacher.load_state_dict(model.teacher.model.state_dict())
    task = task_class(
        AsTimm(model),
        teacher.double(),
        criterion=nn.CrossEntropyLoss(),
        dtype=torch.float64,
        verbose=False,
        **options,
    )
    return task, task(images(), LABELS)


def images(side: int = 160) -> Tensor:
    """The same four random images in each call, (4, 3, side, side)."""
    return torch.randn(4, 3, side, side, generator=torch.Generator().manual_seed(1)).double()


def assert_equal(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


TEACHER = dict(source=TEST_VIT, dtype='float64')


def test_logit_loss_equals_timm():
    cfg = loss('Logit', weight=0.7, temperature=3.0)
    model = build(TEACHER, [cfg], dict(VIT, **SIZES['vit']), head=head(), label_weight=0.3)
    losses = in_double(model).loss(images(), samples())
    options = dict(temperature=3.0, distill_loss_weight=0.7, task_loss_weight=0.3)
    _, theirs = run_task(model, LogitDistillationTask, **options)
    assert_equal(losses['loss_logit'], 0.7 * theirs['kd_loss'])
    assert_equal(sum(losses.values()), theirs['loss'])


@pytest.mark.parametrize('width', [64, 32])
def test_feature_loss_equals_timm(width):
    backbone = dict(VIT, arch=dict(TINY, embed_dims=width, patch_size=16), img_size=160)
    model = build(TEACHER, [loss('Vector', weight=5.0)], backbone, head=head(1000, width))
    losses = in_double(model).loss(images(), samples())
    task, _ = run_task(model, FeatureDistillationTask, distill_loss_weight=5.0)
    projection = task.trainable_module.projection
    assert (projection is None) == (width == 64)
    if projection is not None:
        projection.load_state_dict(model.losses['vector'].project.state_dict())
    theirs = task(images(), LABELS)
    assert_equal(sum(losses.values()), theirs['loss'])


@pytest.mark.parametrize('kind', ['soft', 'hard'])
def test_token_distillation_equals_timm(kind):
    options = dict(type='vit_plugin.DistilledViTClsHead', distillation=kind, alpha=0.6, tau=2.0)
    model = build(TEACHER, [], dict(VIT, **SIZES['distilled']), head=head(**options))
    losses = in_double(model).loss(images(), samples())
    options = dict(distill_type=kind, temperature=2.0, task_loss_weight=0.4)
    _, theirs = run_task(model, TokenDistillationTask, **options)
    assert_equal(losses['loss_distillation'], 0.6 * theirs['distill_loss'])
    assert_equal(sum(losses.values()), theirs['loss'])


def test_hard_target_is_the_class_of_the_teacher():
    model = build(TEACHER, [loss('Logit', target='hard')], dict(VIT, **SIZES['vit']), head=head())
    losses = in_double(model).loss(images(), samples())
    predicted = model.teacher(images(), model.pixels).logits.argmax(1)
    assert_equal(losses['loss_logit'], F.cross_entropy(model(images()), predicted))


def test_images_are_converted_for_the_teacher():
    """The student reads BGR; the teacher has RGB, another normalization and another image size."""
    model = build(TEACHER, [loss('Vector')])
    model.pixels = model.pixels._replace(rgb=False)
    raw = torch.rand(2, 3, 160, 160).double() * 255
    converted = model.teacher.preprocess((raw - 127.5) / 63.75, model.pixels)
    mean, std = (
        255 * torch.tensor(model.teacher.model.pretrained_cfg[key]).double().view(3, 1, 1)
        for key in ('mean', 'std')
    )
    torch.testing.assert_close(converted, (raw.flip(1) - mean) / std, rtol=1e-6, atol=1e-6)
    assert model.teacher(images(32), model.pixels).map.shape == (4, 64, 10, 10)


def teacher_of_maps(**options: Any) -> dict[str, Any]:
    """A teacher of another width than the students, with 2 x 2 patches and a head for 5 classes."""
    arch = dict(TINY, embed_dims=48, patch_size=16)
    backbone = dict(VIT, arch=arch, **options)
    return dict(type='ImageClassifier', backbone=backbone, head=head(5, 48))


needs_mmpretrain_vits = pytest.mark.skipif(
    'MMVisionTransformer' not in RIGHT, reason='the project mmpretrain_vits was removed'
)
STUDENTS = {
    'pure': VIT,
    'hybrid': dict(VIT, arch=dict(TINY, patch_size=1, resnet=dict(stage_depths=(1, 1), width=32))),
    'flexi': dict(
        VIT, patch_embed=dict(type='FlexiPatchEmbed', kernel_size=8, patch_size=8, sizes=(4, 8))
    ),
    'featmap': dict(VIT, out_type='featmap'),
    'convnext': dict(type='vit_plugin.TimmBackbone', model_name='test_convnext'),
    'resnet': dict(type='vit_plugin.TimmBackbone', model_name='test_resnet'),
}
ALL = [*(loss(name) for name in ('Vector', 'Map', 'Gram')), loss('Similarity', length=16)]


# TimmBackbone is in a project that may have been removed.
@pytest.mark.parametrize(
    'name',
    [
        name
        for name, student in STUDENTS.items()
        if student['type'].removeprefix('vit_plugin.') in RIGHT
    ],
)
def test_every_student_trains_a_step(name):
    model = build(teacher_of_maps(), ALL, STUDENTS[name]).train()
    model.init_weights()
    fingerprint = model.teacher.fingerprint
    before = copy.deepcopy(model.teacher.model.state_dict())
    losses = model(torch.randn(4, 3, 32, 32), None, mode='loss')
    assert set(losses) == {'loss_vector', 'loss_map', 'loss_gram', 'loss_similarity'}
    sum(losses.values()).backward()
    assert_all_learn(model)
    assert all(parameter.grad is None for parameter in model.teacher.model.parameters())
    assert not any(module.training for module in model.teacher.model.modules())
    assert_same_state(model.teacher.model, before)
    assert copy.deepcopy(model).teacher is model.teacher
    assert len(fingerprint) == 64


def test_losses_equal_loops_over_images_and_patches():
    """The definitions of the papers, applied to the outputs of both models."""
    model = build(dict(source=teacher_of_maps(), dtype='float64'), ALL).double().eval()
    queue = model.losses['similarity'].queue.clone()
    x = images(32)
    losses = model.loss(x)
    student, teacher = outputs_of(model, x), model.teacher(x, model.pixels)
    project = model.losses['map'].project
    assert teacher.map.shape[2:] == (2, 2)
    small = F.interpolate(student.map, (2, 2), mode='bilinear', antialias=True)
    cells = [(i, row, column) for i in range(4) for row in range(2) for column in range(2)]
    squares = [
        (project(small[i, :, r, c]) - teacher.map[i, :, r, c]).square().mean() for i, r, c in cells
    ]
    assert_equal(losses['loss_map'], torch.stack(squares).mean())
    differences = [
        F.cosine_similarity(small[i, :, a, b], small[i, :, r, c], dim=0)
        - F.cosine_similarity(teacher.map[i, :, a, b], teacher.map[i, :, r, c], dim=0)
        for i, a, b in cells
        for j, r, c in cells
        if i == j
    ]
    assert_equal(losses['loss_gram'], torch.stack(differences).square().mean())
    # The queue of 16 vectors begins with those of the four images.
    references = [*F.normalize(teacher.vector, dim=1), *queue[:12]]
    vector = F.normalize(model.losses['similarity'].project(student.vector), dim=1)
    terms = []
    for i in range(4):
        teacher_cosines = torch.stack([references[i] @ other for other in references])
        student_cosines = torch.stack([vector[i] @ other for other in references])
        probs = (teacher_cosines / 0.01).softmax(0)
        terms.append(-(probs * (student_cosines / 0.2).log_softmax(0)).sum())
    assert_equal(losses['loss_similarity'], torch.stack(terms).mean())


def test_cosine_distance_ignores_scale():
    model = build(teacher_of_maps(), [loss('Vector', distance='cosine')], dict(VIT))
    distillation = model.losses['vector']
    distillation.project, target = nn.Identity(), torch.randn(3, 48)
    assert distillation.compare(7 * target, target).item() == pytest.approx(0, abs=1e-6)
    assert distillation.compare(-target, target).item() == pytest.approx(2)


def test_checkpoint_is_that_of_a_classifier():
    model = build(teacher_of_maps(), [loss('Logit')], head=head(5, 32))
    without_teacher = build(None, [loss('Logit')], head=head(5, 32))
    assert without_teacher.teacher is None
    assert not without_teacher.losses
    assert not any('teacher' in name for name in model.state_dict())
    plain = MODELS.build(dict(type='ImageClassifier', backbone=VIT, head=head(5, 32)))
    assert not load_weights(plain, model.state_dict()).untrained
    assert not without_teacher.load_state_dict(model.state_dict(), strict=False).missing_keys
    for other in (plain, without_teacher):
        assert torch.equal(other.eval()(images(32).float()), model.eval()(images(32).float()))


def test_models_of_timm_and_mmpretrain_are_teachers():
    x = images(64).float()
    for name in ('test_convnext.r160_in1k', 'test_resnet.r160_in1k', 'test_vit.r160_in1k'):
        model = build(f'timm://{name}', [loss('Vector'), loss('Map')], dict(VIT, img_size=64))
        output = model.teacher(x, model.pixels)
        theirs = model.teacher.model
        with torch.no_grad():
            assert_equal(output.logits, theirs(model.teacher.preprocess(x, model.pixels)))
        assert output.map.shape[:2] == (4, theirs.num_features)
    resnet = dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=5, in_channels=512),
    )
    model = build(resnet, [loss('Logit'), loss('Map')], head=head(5, 32))
    with torch.no_grad():
        assert_equal(model.teacher(x, model.pixels).logits, model.teacher.model(x))


def test_the_teacher_computes_in_its_own_dtype():
    model = build(dict(source=teacher_of_maps(), dtype='bfloat16'), [loss('Vector')])
    with torch.autocast('cpu', torch.bfloat16):
        outputs = model.teacher(images(32).float(), model.pixels)
    assert {output.dtype for output in outputs[1:]} == {torch.float32}
    dtypes = {parameter.dtype for parameter in model.teacher.model.parameters()}
    assert dtypes == {torch.bfloat16}


class NoMaps(nn.Module):
    """A model that returns vectors and no maps."""

    channels = (8,)

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 8)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        return (self.layer(x.mean(dim=(2, 3))),)


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (
            lambda: build(dict(type=NoMaps), [loss('Map')]),
            'MapDistillation compares the map of both, but the teacher has none; leave it out',
        ),
        (
            lambda: build(teacher_of_maps(), [loss('Logit')], head=head(7, 32)),
            'the student has 7 classes and the teacher 5; give a teacher of the same classes',
        ),
        (
            lambda: build(teacher_of_maps(), [loss('Logit')]),
            'LogitDistillation compares the logits of both, but the student has none',
        ),
        (lambda: build(teacher_of_maps(), []), 'nothing is learned from the teacher; give losses'),
        (lambda: build(teacher_of_maps(), [loss('Map')] * 2), 'losses has MapDistillation, twice'),
        (
            lambda: build(teacher_of_maps(), [dict(type='vit_plugin.TokenPooling')]),
            'losses has TokenPooling, which compares no outputs',
        ),
        (
            lambda: build(teacher_of_maps(), [loss('Map')], dict(type='ResNet', depth=18)),
            'the backbone ResNet does not report its channels; take a vit_plugin.VisionTransformer',
        ),
        (
            lambda: build(teacher_of_maps(patch_embed=dict(in_channels=1)), [loss('Map')]),
            'the teacher ImageClassifier does not compute images of 3 channels and 32 x 32 pixels',
        ),
        (lambda: build(None, []).loss(images(32)), 'a teacher is needed to train'),
        (lambda: build('none.pth', [loss('Map')]), "There is no checkpoint file 'none.pth'"),
        (
            lambda: build(dict(source=TEST_VIT, dtype='int8'), [loss('Map')]),
            "dtype='int8' must be",
        ),
        (
            lambda: build(dict(source=teacher_of_maps(), arch='B/16'), [loss('Map')]),
            'the config of a model already; leave its arch and config out',
        ),
        (
            lambda: build(dict(source=TEST_VIT, config='none.py'), [loss('Map')]),
            "There is no config file 'none.py'",
        ),
    ],
)
def test_wrong_pairs_raise(make, words):
    with rejects(words):
        make()


def train_sharded(name: str, expected: list[Tensor]) -> None:
    """Train on half of each batch, and compare the mean losses with those of one process."""
    model, optimizer = student_of(name, Sharding())
    rank = dist.get_rank()
    for batch, theirs in zip(batches(), expected, strict=True):
        total = step(model, optimizer, batch.chunk(2)[rank])
        dist.all_reduce(total)
        torch.testing.assert_close(total / 2, theirs, rtol=0, atol=1e-10)
    assert_sharded_and_frozen(model.teacher.module)


def assert_sharded_and_frozen(teacher: nn.Module) -> None:
    """Each rank holds half of the sharded parts after a forward, and no parameter is trained."""
    parameters = [parameter for part in parts_to_shard(teacher) for parameter in part.parameters()]
    assert all(isinstance(parameter, DTensor) for parameter in parameters)
    held = sum(parameter.to_local().numel() for parameter in parameters)
    assert 0 < held < 0.51 * sum(parameter.numel() for parameter in parameters)
    assert not any(parameter.requires_grad for parameter in teacher.parameters())


TEACHERS: dict[str, Callable[[], Any]] = {
    'ours': lambda: teacher_of_maps(),
    'timm': lambda: TEST_VIT,
    'mmpretrain': lambda: dict(type='ImageClassifier', backbone=dict(type='ResNet', depth=18)),
}


def student_of(
    teacher: str, sharding: Sharding | None = None
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A student of one of the TEACHERS and its optimizer.

    Args:
        teacher: the key of the teacher.
        sharding: how to shard the student. None: not at all.
    """
    init_default_scope('mmpretrain')
    torch.manual_seed(0)
    model = build(dict(source=TEACHERS[teacher](), dtype='float64'), ALL).double().train()
    if sharding:
        shard(model, sharding, 'cpu')
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-4)


def batches() -> list[Tensor]:
    """The same three random batches in each call."""
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(4, 3, 32, 32, generator=generator).double() for _ in range(3)]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Tensor) -> Tensor:
    """Train a step, and return the total loss."""
    total = sum(model(batch, None, mode='loss').values())
    total.backward()
    optimizer.step()
    optimizer.zero_grad()
    return total.detach()


@pytest.mark.nightly
@pytest.mark.parametrize('name', TEACHERS)
def test_two_sharded_ranks_learn_as_one(tmp_path, name):
    """The queue has the vectors of both ranks, and each rank holds half of the teacher."""
    model, optimizer = student_of(name)
    expected = [step(model, optimizer, batch) for batch in batches()]
    on_ranks(2, tmp_path, train_sharded, name, expected)


@pytest.mark.parametrize('out_type', ['cls_token', 'avg_featmap', 'raw', 'featmap'])
@pytest.mark.parametrize(
    'kind',
    [kind for kind in ('VisionTransformer', 'MMVisionTransformer', 'MMViTEVA02') if kind in RIGHT],
)
def test_compared_outputs_equal_those_of_the_backbone(kind, out_type):
    """Also for MMPretrain's, which norm only the last block, and the mean of patches once more."""
    sizes = dict(arch=TINY) if kind == 'VisionTransformer' else dict(arch=TINY_SIZES, patch_size=8)
    backbone = MODELS.build(
        dict(type=f'vit_plugin.{kind}', img_size=32, out_type=out_type, out_indices=(0, 1), **sizes)
    ).double()
    for parameter in backbone.parameters():
        nn.init.normal_(parameter, std=0.3)
    outputs = outputs_of(backbone, images(32))
    for actual, expected in zip(outputs.features, backbone(images(32)), strict=True):
        assert_equal(actual, expected)
    # `fc_norm` is the norm of the mean of patches, which maps do not get.
    backbone.out_type, backbone.fc_norm = 'featmap', None
    assert_equal(outputs.map, backbone(images(32))[-1])


@needs_mmpretrain_vits
def test_both_tokens_of_mmpretrains_student_reach_its_head():
    student = dict(type='vit_plugin.MMDistilledVisionTransformer', arch=TINY_SIZES, patch_size=8)
    model = build(
        teacher_of_maps(),
        [dict(type='vit_plugin.VectorDistillation')],
        dict(student, img_size=32),
        head=dict(type='DeiTClsHead', num_classes=4, in_channels=32),
    )
    model = in_double(model)
    outputs, (tokens,) = outputs_of(model, images(32)), model.backbone(images(32))
    assert_equal(outputs.vector, tokens[0])
    assert_equal(outputs.logits, model.head(model.extract_feat(images(32))))


@needs_mmpretrain_vits
def test_every_norm_of_mmpretrains_student_learns():
    student = dict(
        type='vit_plugin.MMVisionTransformer', arch=TINY_SIZES, patch_size=8, img_size=32
    )
    model = build(
        teacher_of_maps(),
        [dict(type='vit_plugin.VectorDistillation')],
        dict(student, out_type='avg_featmap'),
        head=head(4, 32),
    )
    sum(model.loss(images(32).float(), samples()).values()).backward()
    assert_all_learn(model.backbone)


@pytest.mark.filterwarnings('ignore')
def test_a_student_leaves_its_teacher_unchanged():
    backbone = dict(VIT, encoder=dict(dist_token=1), out_type='raw')
    teacher = dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=5, in_channels=512),
    )
    model = MODELS.build(
        dict(
            type='vit_plugin.Distiller',
            teacher=teacher,
            backbone=backbone,
            head=dict(type='vit_plugin.DistilledViTClsHead', num_classes=5, in_channels=32),
        )
    ).train()
    model.init_weights()
    assert not any('teacher' in name for name in model.state_dict())
    before = {name: value.clone() for name, value in model.teacher.model.state_dict().items()}
    losses = model(images(32).float(), samples(), mode='loss')
    (losses['loss'] + losses['loss_distillation']).backward()
    assert_all_learn(model)
    assert_same_state(model.teacher.model, before)  # including the statistics of its BatchNorms
