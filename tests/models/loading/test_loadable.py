"""Load checkpoints of any format, in every way, and refuse those that do not fit the model."""

import copy
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sharded_load
import timm
import torch
import torch.distributed as dist
import torchvision
from mmengine.runner import load_checkpoint
from model_states import assert_same_state
from rejection import rejects
from tiny_models import classifier
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from vit_plugin.models import SimpleFPN, TokenPooling, VisionTransformer, load_weights
from vit_plugin.models.loading import check_start, load_trained
from vit_plugin.weights import FORMATS, Checkpoint, open_checkpoint
from vit_plugin.weights.rules import Step


def exported(model: torch.nn.Module, name: str = 'timm') -> dict:
    """The weights of a backbone or classifier in a format, as another library saves them."""
    state = {
        key.removeprefix('backbone.'): value.clone() for key, value in model.state_dict().items()
    }
    return FORMATS[name].export(state, heads=2)[0]


def test_every_key_is_accounted_for(tiny):
    source, model = classifier(tiny), classifier(tiny, classes=7)
    torch.nn.init.normal_(source.head.layers.head.weight)
    weights = {**exported(source), 'decoder_norm.weight': torch.ones(3), 'stray': torch.ones(2)}
    report = load_weights(model, weights, skip=['stray'])
    assert report.ignored['decoder_norm.weight'] == 'decoder of masked pre-training'
    assert report.ignored['stray'] == 'skipped'
    assert set(report.initialized) == {'head.layers.head.weight', 'head.layers.head.bias'}
    used = [key for keys in report.matched.values() for key in keys]
    assert len(used) == len(set(used))
    assert set(used) | set(report.ignored) | {'head.weight', 'head.bias'} == set(weights)
    text = str(report)
    assert 'the checkpoint has 3 classes, the model 7' in text
    assert 'tensors from the format timm' in text


def test_patterns_to_skip_that_match_no_key_are_noted(tiny):
    weights = exported(classifier(tiny))
    report = load_weights(classifier(tiny), weights, skip=['head.*', 'head.{rest}'])
    assert "skip: 'head.*' matches no key" in str(report)
    assert "'head.{rest}'" not in str(report)


def test_pre_logits_are_loaded_into_a_head_and_ignored_by_a_backbone(tiny):
    source = classifier(tiny, hidden_dim=24)
    target = classifier(tiny, hidden_dim=24)
    load_weights(target, exported(source, 'jax'))
    assert torch.equal(target.head.layers.pre_logits.weight, source.head.layers.pre_logits.weight)
    report = load_weights(VisionTransformer(**tiny), exported(source, 'jax'))
    assert set(report.ignored.values()) == {'the model has no head'}


@pytest.mark.parametrize('name', ['jax', 'hf', 'timm'])
def test_each_tensor_is_made_once(tiny, monkeypatch, name):
    source = VisionTransformer(**tiny)
    made = []
    to_ours = Step.to_ours

    def counted(step: Step, weights: dict) -> torch.Tensor:
        tensor = to_ours(step, weights)
        if not tensor.is_meta:  # the plan makes meta tensors to learn the shapes
            made.append(step.ours)
        return tensor

    monkeypatch.setattr(Step, 'to_ours', counted)
    report = load_weights(VisionTransformer(**tiny), exported(source, name))
    assert sorted(made) == sorted(report.matched)


@pytest.mark.parametrize(
    'change', ['missing', 'misspelled', 'misshaped', 'foreign', 'nan', 'empty']
)
def test_weights_that_do_not_fit_raise_and_change_nothing(tiny, change):
    model, weights = VisionTransformer(**tiny), exported(VisionTransformer(**tiny))
    value = weights.pop('blocks.1.mlp.fc2.weight')
    words = 'lacks blocks.1.mlp.fc2.weight'
    if change == 'misspelled':
        weights['blocks.1.mlp.fc_2.weight'] = value
        words = 'left over in it are blocks.1.mlp.fc_2.weight'
    elif change == 'misshaped':
        weights['blocks.1.mlp.fc2.weight'] = value[:, :-1]
        words = (
            r'blocks.1.mlp.fc2.weight has the shape \(32, 64\) in the model and '
            r'\(32, 63\) in the checkpoint'
        )
    elif change == 'foreign':
        weights = {'layer1.0.conv1.weight': value}
        words = r'is not known: its keys \(layer1.0.conv1.weight\) name no block of a known'
    elif change == 'nan':
        weights['blocks.1.mlp.fc2.weight'] = value * float('nan')
        words = "has infinite values or NaN in 'blocks.1.mlp.fc2.weight'"
    elif change == 'empty':
        weights, words = {}, 'has no weights; give another'
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with rejects(words):
        load_weights(model, weights)
    assert_same_state(model, before)


@pytest.mark.parametrize(
    'make',
    [
        torchvision.models.resnet18,
        partial(timm.create_model, 'test_efficientnet'),
        partial(timm.create_model, 'swin_tiny_patch4_window7_224', embed_dim=24, depths=(1, 1)),
    ],
)
def test_other_architectures_with_shared_names_have_no_format(tiny, make):
    """They share, for example, CLIP's conv1, and timm's norm and patch_embed."""
    with torch.device('meta'):
        weights = make().to_empty(device='cpu').state_dict()
    words = r'not known: its keys \(.* more\) name no block of a known Vision Transformer, as '
    for model in (VisionTransformer(**tiny), classifier(tiny)):
        with rejects(words):
            load_weights(model, weights)
        with rejects(words):
            model.load_state_dict(dict(weights), strict=False)


def test_a_state_of_the_head_alone_is_loaded(tiny):
    source, model = classifier(tiny), classifier(tiny)
    torch.nn.init.normal_(source.head.layers.head.weight)
    head = {key: value for key, value in source.state_dict().items() if key.startswith('head.')}
    assert not model.load_state_dict(head, strict=False).unexpected_keys
    assert torch.equal(model.head.layers.head.weight, source.head.layers.head.weight)


def test_skipped_parameters_may_be_missing(tiny):
    model, weights = VisionTransformer(**tiny), exported(VisionTransformer(**tiny))
    del weights['blocks.1.mlp.fc2.weight']
    report = load_weights(model, weights, skip=['blocks.1.mlp.{rest}'])
    assert report.initialized == {
        'blocks.1.mlp.fc1.weight': 'skipped',
        'blocks.1.mlp.fc1.bias': 'skipped',
        'blocks.1.mlp.fc2.weight': 'skipped, and not in the checkpoint',
        'blocks.1.mlp.fc2.bias': 'skipped',
    }


def test_keys_are_skipped_by_their_own_names(tiny):
    weights = exported(classifier(tiny), 'hf')
    report = load_weights(classifier(tiny), weights, skip=['classifier.{rest}'])
    assert report.initialized == {
        'head.layers.head.weight': 'skipped',
        'head.layers.head.bias': 'skipped',
    }


def test_fewer_blocks_take_the_first_of_the_checkpoint(tiny):
    source, model = VisionTransformer(**tiny), VisionTransformer(**tiny, out_indices=0)
    report = load_weights(model, source.state_dict())
    assert all(key.startswith('blocks.1.') for key in report.ignored)


def test_a_model_without_our_backbone_raises():
    with rejects('Linear has 0'):
        load_weights(torch.nn.Linear(2, 2), {})


@pytest.mark.parametrize(
    ('numerics', 'form', 'advice'),
    [
        ('authors', 'jax', []),
        ('timm', 'timm', []),
        ('authors', 'timm', [('act_cfg', "numerics='timm'")]),
        ('timm', 'jax', [('act_cfg', "numerics='authors'")]),
        ('timm', 'torchvision', []),
        (dict(base='timm', norm_cfg=dict(eps=1e-3)), 'timm', [('norm_cfg', "numerics='timm'")]),
        ('timm', 'hf', [('norm_cfg', "norm_cfg={'eps': 1e-12} in numerics")]),
    ],
)
def test_different_numerics_are_noted(tiny, numerics, form, advice):
    model = classifier(dict(tiny, numerics=numerics))
    torch.nn.init.ones_(model.head.layers.head.weight)
    report = load_weights(model, exported(model, form))
    for (difference, cure), (field, setting) in zip(report.numerics.items(), advice, strict=True):
        assert f'code with {field}=' in difference
        assert cure == f'set {setting}'
        assert f'note         {difference}: {cure}' in str(report)


NO_PREFIX_ROWS = dict(type='learned', prefix_rows=False)
SWIGLU = dict(encoder=dict(gated_mlp=True), numerics=dict(base='timm', act_cfg=dict(type='SiLU')))
CLIP = dict(patch_embed=dict(bias=False), encoder=dict(pre_norm=True))


@pytest.mark.parametrize(
    ('form', 'model'),
    [
        ('timm', SWIGLU),
        ('hf_dinov2', SWIGLU),
        ('mmpretrain', SWIGLU),  # DINOv2 g/14
        *(
            (
                form,
                dict(
                    CLIP,
                    numerics=dict(base='timm', norm_cfg=dict(eps=1e-5), act_cfg=dict(type=gelu)),
                ),
            )
            # LAION's activation and OpenAI's.
            for form in ('timm', 'clip', 'mmpretrain')
            for gelu in ('GELU', 'QuickGELU')
        ),
        *(
            ('timm', dict(with_cls_token=False, out_type='avg_featmap', numerics=name))
            for name in ('timm', 'authors')
        ),
    ],
)
def test_ambiguous_numerics_are_not_noted(tiny, form, model):
    """SigLIP, CLIP and DINOv2 publish models that differ only in the activation."""
    model = classifier({**tiny, **model})
    torch.nn.init.ones_(model.head.layers.head.weight)
    report = load_weights(model, exported(model, form))
    assert not report.numerics
    assert not report.notes


def test_different_numerics_of_a_hybrids_stem_are_noted(tiny_hybrid):
    model = VisionTransformer(**tiny_hybrid, numerics='timm')
    differences = '\n'.join(load_weights(model, exported(model, 'jax')).numerics)
    assert 'stem_norm_cfg' in differences
    assert 'stem_conv_cfg' in differences


@pytest.mark.parametrize('form', ['vit_plugin', 'timm', 'jax'])
def test_weights_with_the_prefix_module_are_loaded(tiny, form):
    from mmengine.model import ExponentialMovingAverage

    source = classifier(tiny)
    torch.nn.init.normal_(source.head.layers.head.weight)
    weights = source.state_dict() if form == 'vit_plugin' else exported(source, form)
    average = ExponentialMovingAverage(classifier(tiny))
    average.load_state_dict(
        {'steps': torch.tensor(3), **{f'module.{key}': value for key, value in weights.items()}}
    )
    assert average.steps == 3
    model = classifier(tiny)
    load_weights(model, {f'module.{key}': value for key, value in weights.items()})
    assert_same_state(source, average.module)
    assert_same_state(source, model)


def test_other_parts_of_a_detector_stay_initialized(tiny):
    detector = torch.nn.ModuleDict(
        dict(backbone=VisionTransformer(**tiny), rpn_head=torch.nn.Conv2d(3, 3, 1))
    )
    source = VisionTransformer(**tiny)
    report = load_weights(detector, exported(source))
    assert report.initialized['rpn_head.weight'] == 'the checkpoint has no rpn_head'
    assert torch.equal(detector['backbone'].pos_embed, source.pos_embed)


@pytest.fixture
def printed(monkeypatch) -> list[str]:
    """The texts that loading logs."""
    lines: list[str] = []
    for file in ('loadable_module', 'loading.hooks'):
        monkeypatch.setattr(
            f'vit_plugin.models.{file}.print_log', lambda text, *args: lines.append(text)
        )
    return lines


def with_int8_weights(weights: dict) -> dict:
    """The weights with the first projection of an attention as int8."""
    key = next(key for key in weights if key.endswith(('query/kernel', 'attn.qkv.weight')))
    return {**weights, key: (weights[key] * 30).to(torch.int8)}


# Arguments of the checkpoint's model, a function that changes its weights (`dict` changes nothing),
# and a pattern of the error.
UNFIT_CHECKPOINTS = [
    *(
        (arguments, dict, f'computes something else.*{hint}')
        for arguments, hint in (
            (dict(encoder=dict(layer_scale_init_value=1e-5)), r'\(layer_scale_init_value=1e-5\)'),
            (dict(encoder=dict(reg_token=4), pos_embed=NO_PREFIX_ROWS), r'reg_token=\.\.\.'),
            (dict(encoder=dict(pre_norm=True)), r'encoder=dict\(pre_norm=True\)'),
            (dict(encoder=dict(qk_norm=True)), r'encoder=dict\(qk_norm=True\)'),
            (dict(pos_embed=dict(type='learned', relative=True)), 'relative=True'),
        )
    ),
    *(
        (
            {},
            lambda weights, form=form: with_int8_weights(FORMATS[form].export(weights, heads=2)[0]),
            'has .*(query/kernel|qkv.weight) as int8, but the model has real numbers',
        )
        for form in ('vit_plugin', 'timm', 'jax', 'mmpretrain')
    ),
]


def load_through_mmengine(model: torch.nn.Module, weights: dict, path: Path, way: str) -> list[str]:
    """Write weights to a file, load it through MMEngine, and return MMEngine's complaints."""
    complaints: list[str] = []
    torch.save(weights, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            'mmengine.runner.checkpoint.print_log',
            lambda text, *args, **kwargs: complaints.append(text),
        )
        if way == 'load_from':
            load_checkpoint(model, str(path))
        else:
            model.init_cfg = dict(type='Pretrained', checkpoint=str(path))
            model.init_weights()
    return [text for text in complaints if 'do not match' in text]


@pytest.mark.parametrize('way', ['load_from', 'init_cfg'])
@pytest.mark.parametrize('form', ['vit_plugin', 'timm', 'jax'])
def test_mmengine_skips_a_head_of_another_class_count_and_torch_raises(tiny, tmp_path, form, way):
    source, model = classifier(tiny), classifier(tiny, classes=7)
    for parameter in (*source.parameters(), *model.head.parameters()):
        torch.nn.init.normal_(parameter)
    before = {key: value.clone() for key, value in model.head.state_dict().items()}
    weights = source.state_dict() if form == 'vit_plugin' else exported(source, form)
    (complaint,) = load_through_mmengine(model, weights, tmp_path / 'x.pth', way)
    assert (
        'size mismatch for head.layers.head.weight: copying a param with shape torch.Size([3, 32])'
        in complaint
    )
    with pytest.raises(RuntimeError, match='size mismatch for head.layers.head.weight'):
        model.load_state_dict(weights)
    assert_same_state(model.head, before)
    assert torch.equal(model.backbone.norm.weight, source.backbone.norm.weight)


@pytest.mark.parametrize(
    ('source', 'model', 'sentence', 'complaint'),
    [
        ({}, {}, 'head.layers.head.weight is all zeros in the checkpoint', None),
        (
            dict(hidden_dim=24),
            {},
            '',
            'unexpected key in source state_dict: head.layers.pre_logits.weight',
        ),
        (
            {},
            dict(classes=0),
            'head.layers.head.weight, head.layers.head.bias are for the neck and head, and unused '
            'if the model has none',
            'unexpected key',
        ),
        (dict(classes=0), {}, '', 'missing keys in source state_dict: head.layers.head.weight'),
    ],
)
def test_mmengine_reports_different_heads(
    tiny, tmp_path, printed, source, model, sentence, complaint
):
    source, model = (classifier(tiny, **kwargs) for kwargs in (source, model))
    complaints = load_through_mmengine(
        model, exported(source, 'jax'), tmp_path / 'x.pth', 'load_from'
    )
    assert sentence in '\n'.join(printed)
    if complaint is None:
        assert not complaints
    else:
        (text,) = complaints
        assert complaint in text
    assert torch.equal(model.backbone.norm.weight, source.backbone.norm.weight)


# Ways of loading a file: functions of a model, whose `init_cfg` names the file, and its path.
LOADS = {
    'load_weights': load_weights,
    'init_cfg': lambda model, path: model.init_weights(),
    'load_from': load_checkpoint,
    'load_state_dict': lambda model, path: model.load_state_dict(torch.load(path)),
}


@pytest.mark.parametrize('way', LOADS)
def test_every_way_of_loading_refuses_unfit_checkpoints(tiny, tmp_path, way):
    path = str(tmp_path / 'x.pth')
    for arguments, change, words in UNFIT_CHECKPOINTS:
        weights = VisionTransformer(**tiny, **arguments).state_dict()
        torch.save(change(weights), path)
        model = VisionTransformer(**tiny, init_cfg=dict(type='Pretrained', checkpoint=path))
        before = {key: value.clone() for key, value in model.state_dict().items()}
        with rejects(words):
            LOADS[way](model, path)
        assert_same_state(model, before)


def test_load_state_dict_leaves_missing_keys_to_torch(tiny):
    model = VisionTransformer(**tiny)
    state = model.state_dict()
    deeper = {**state, 'blocks.7.mlp.fc1.weight': torch.ones(2, 2)}
    with rejects('blocks.7.mlp.fc1.weight .needs an arch with more blocks'):
        model.load_state_dict(deeper)
    del state['norm.bias']
    with pytest.raises(RuntimeError, match='Missing key'):
        model.load_state_dict(state)
    loaded = model.load_state_dict({**state, 'projector.weight': torch.ones(2)}, strict=False)
    assert loaded.missing_keys == ['norm.bias']
    assert loaded.unexpected_keys == ['projector.weight']
    # Blocks that the model leaves out because of its out_indices are not surplus.
    shallow = VisionTransformer(**tiny, out_indices=0)
    shallow.load_state_dict(model.state_dict())


def test_load_trained_refuses_checkpoints_of_other_models(tiny, tmp_path):
    path = str(tmp_path / 'checkpoint.pth')
    torch.save(dict(state_dict=classifier(tiny).state_dict(), meta=dict(epoch=3)), path)
    load_trained(classifier(tiny), open_checkpoint(path))
    with rejects(r'not of this model: size mismatch for head.layers.head'):
        load_trained(classifier(tiny, classes=7), open_checkpoint(path))
    other = classifier(dict(tiny, encoder=dict(layer_scale_init_value=0.1)))
    torch.save(other.state_dict(), tmp_path / 'scaled.pth')
    with rejects('computes something else: blocks.0.ls1.gamma'):
        load_trained(classifier(tiny), open_checkpoint(tmp_path / 'scaled.pth'))
    with rejects('it lacks 2 of its .* such as'):
        load_trained(
            classifier(dict(tiny, encoder=dict(layer_scale_init_value=0.1), out_indices=0)),
            open_checkpoint(path),
        )


@pytest.mark.parametrize(
    ('cause', 'raised', 'words'),
    [
        (RuntimeError('no such kernel'), ValueError, 'is not of this model: no such kernel'),
        (RuntimeError('DefaultCPUAllocator: not enough memory'), RuntimeError, '^DefaultCPU'),
    ],
)
def test_load_trained_explains_errors_of_a_single_line(tiny, monkeypatch, cause, raised, words):
    def load_state_dict(*args: object, **kwargs: object) -> None:
        raise cause

    model = classifier(tiny)
    checkpoint = Checkpoint('x.pth', dict(state_dict=model.state_dict()))
    monkeypatch.setattr(model, 'load_state_dict', load_state_dict)
    with pytest.raises(raised, match=words):
        load_trained(model, checkpoint)


def test_load_trained_refuses_integer_weights(tiny, tmp_path):
    state = classifier(tiny).state_dict()
    for name in ('head.layers.head.bias', 'backbone.cls_token'):
        torch.save({**state, name: state[name].long()}, tmp_path / 'x.pth')
        with rejects(f'has {name} as int64'):
            load_trained(classifier(tiny), open_checkpoint(tmp_path / 'x.pth'))


def test_float8_weights_are_refused(tiny):
    """torch has no sum of them, and their scale may be elsewhere."""
    model = VisionTransformer(**tiny)
    name = 'blocks.0.mlp.fc1.weight'
    state = dict(model.state_dict(), **{name: torch.ones(64, 32, dtype=torch.float8_e4m3fn)})
    with rejects(f'{name} as float8_e4m3fn, .* not quantized'):
        load_weights(model, state)


def test_check_start_accepts_integer_counters_and_a_missing_head(tiny):
    model = torch.nn.ModuleDict(
        dict(backbone=VisionTransformer(**tiny), head=torch.nn.BatchNorm1d(3))
    )
    state = model.state_dict()
    check_start(model, state)
    check_start(
        model, {name: value for name, value in state.items() if name.startswith('backbone.')}
    )
    with rejects(r'lacks norm.weight'):
        check_start(
            model, {name: value for name, value in state.items() if name != 'backbone.norm.weight'}
        )


def test_init_cfg_skips_parameters_by_name(tiny, tmp_path):
    source = VisionTransformer(**tiny, encoder=dict(layer_scale_init_value=1e-5))
    torch.save(source.state_dict(), tmp_path / 'x.pth')
    cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'x.pth'))
    model = VisionTransformer(**tiny, init_cfg=dict(cfg, skip=['blocks.{i}.ls{k}.gamma']))
    model.init_weights()
    assert torch.equal(model.pos_embed, source.pos_embed)
    with rejects(r'may have prefix, skip and source_grid'):
        VisionTransformer(**tiny, init_cfg=dict(cfg, skipp=['norm.weight'])).init_weights()
    for wrong in (dict(skip='norm.{rest}'), dict(source_grid=4), dict(checkpoint=None)):
        with rejects(r'may have prefix, skip and source_grid, where skip is a list'):
            VisionTransformer(**tiny, init_cfg={**cfg, **wrong}).init_weights()
    with rejects(r"no weight in the checkpoint begins with 'bacbone\.'; correct prefix"):
        VisionTransformer(**tiny, init_cfg=dict(cfg, prefix='bacbone')).init_weights()
    del cfg['checkpoint']
    with rejects(r'must have checkpoint, a path or address'):
        VisionTransformer(**tiny, init_cfg=cfg).init_weights()


@pytest.mark.parametrize(
    ('skip', 'words'),
    [
        ('head.{rest}', r'must be a list of patterns; give skip='),
        (['{rest}.attn.{rest}'], r'redefinition of group name .* give each placeholder once'),
    ],
)
def test_patterns_to_skip_that_match_nothing_raise(tiny, skip, words):
    model = VisionTransformer(**tiny)
    with rejects(words):
        load_weights(model, model.state_dict(), skip=skip)


def test_a_model_on_the_meta_device_gets_the_loaded_tensors(tiny):
    source = classifier(tiny)
    with torch.device('meta'):
        model, other = classifier(tiny), classifier(tiny, classes=7)
    load_weights(model, exported(source, 'jax'))
    assert_same_state(source, model)
    for key, value in source.state_dict().items():
        assert value.data_ptr() != model.state_dict()[key].data_ptr()
    assert model.backbone.norm.weight.requires_grad
    notes = load_weights(other, exported(source, 'timm')).notes
    assert (
        'head.layers.head.weight, head.layers.head.bias are still on the meta device' in notes[-1]
    )
    with torch.device('meta'):
        backbone = VisionTransformer(**tiny)
    backbone.load_state_dict(exported(classifier(tiny, classes=0), 'hf'), assign=True)
    assert not any(parameter.is_meta for parameter in backbone.parameters())


@pytest.fixture
def process_group(tmp_path) -> Iterator[None]:
    """A process group of this process, which sharding needs."""
    dist.init_process_group(
        'gloo', init_method=f'file://{tmp_path}/rendezvous', rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize('meta', [False, True])
@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_a_sharded_model_is_loaded(tiny, process_group, way, meta):
    source = classifier(tiny)
    torch.nn.init.normal_(source.head.layers.head.weight)
    with torch.device('meta' if meta else 'cpu'):
        model = classifier(tiny)
    mesh = init_device_mesh('cpu', (1,))
    for block in model.backbone.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if way == 'load_weights':
        load_weights(model, exported(source, 'jax'))
    else:
        model.load_state_dict(exported(source, 'hf'), assign=meta)
    for key, value in source.state_dict().items():
        loaded = model.state_dict()[key]
        assert isinstance(loaded, DTensor) == (key in dict(source.named_parameters()))
        if isinstance(loaded, DTensor):
            loaded = loaded.full_tensor()
        assert torch.equal(loaded, value), key


@pytest.mark.parametrize(
    'neck', [TokenPooling('map', in_channels=32, map_cfg=dict(num_heads=2)), SimpleFPN(32, 8)]
)
def test_a_sharded_neck_is_loaded(process_group, neck):
    state = {key: torch.randn_like(value) for key, value in neck.state_dict().items()}
    model = torch.nn.Sequential(OrderedDict(neck=copy.deepcopy(neck)))
    fully_shard(model, mesh=init_device_mesh('cpu', (1,)))
    model.load_state_dict({f'neck.{key}': value for key, value in state.items()})
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.full_tensor(), state[name.removeprefix('neck.')]), name


@pytest.mark.nightly
def test_a_model_sharded_over_two_processes_is_loaded(tiny, tmp_path):
    source = VisionTransformer(**tiny)
    for parameter in source.parameters():
        torch.nn.init.normal_(parameter)
    torch.save(source.state_dict(), tmp_path / 'ours.pth')
    np.savez(
        tmp_path / 'theirs.npz',
        **{key: value.numpy() for key, value in exported(source, 'jax').items()},
    )
    torch.multiprocessing.spawn(sharded_load.load, (tiny, str(tmp_path)), nprocs=2)


def exported_with_heads(model: torch.nn.Module, heads: int) -> dict:
    """The weights in the authors' format, whose shapes show the number of attention heads."""
    return FORMATS['jax'].export(
        {key.removeprefix('backbone.'): value.clone() for key, value in model.state_dict().items()},
        heads,
    )[0]


@pytest.mark.parametrize('load', [load_weights, VisionTransformer.load_state_dict])
def test_other_numbers_of_attention_heads_are_refused(tiny, load):
    model = VisionTransformer(**tiny)
    with rejects('the checkpoint has 4 attention heads .*, the model 2; set num_heads=4'):
        load(model, exported_with_heads(model, 4))


def test_other_numbers_of_attention_heads_in_a_pooling_are_refused(tiny):
    pooling = dict(mode='map', in_channels=32, map_cfg=dict(num_heads=4))
    neck = dict(pooling, type='vit_plugin.TokenPooling')
    model = classifier(dict(tiny, out_type='raw'), classes=0, neck=neck)
    # Only the encoder has 4 heads.
    state = {
        **exported_with_heads(model, 2),
        **{
            key: value
            for key, value in exported_with_heads(model, 4).items()
            if 'MAPHead' not in key
        },
    }
    with rejects('neck.attn_pool.q.weight: the checkpoint has 2 .*the model 4'):
        load_weights(model, exported_with_heads(model, 2))
    with rejects('blocks.0.attn.qkv.weight: the checkpoint has 4 .*the model 2'):
        model.load_state_dict(state)


def test_other_entries_of_init_cfg_are_left_to_mmengine(tiny, tmp_path):
    source = VisionTransformer(**tiny)
    torch.save(
        {f'student.{key}': value for key, value in source.state_dict().items()}, tmp_path / 'x.pth'
    )
    constant = dict(type='Constant', layer='LayerNorm', val=3.0)
    model = VisionTransformer(**tiny, init_cfg=[constant])
    model.init_weights()
    assert (model.norm.weight == 3).all()
    model = VisionTransformer(
        **tiny,
        init_cfg=[
            constant,
            dict(type='Pretrained', checkpoint=str(tmp_path / 'x.pth'), prefix='student.'),
        ],
    )
    model.init_weights()
    assert torch.equal(model.norm.weight, source.norm.weight)
    assert len(model.init_cfg) == 2


def test_load_trained_refuses_infinite_weights(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    state = model.state_dict()
    state['1.running_var'] = torch.tensor([1.0, float('inf')])
    torch.save(dict(state_dict=state), tmp_path / 'weights.pth')
    with rejects(r"weights.pth' has infinite values or NaN in '1.running_var'; give one that"):
        load_trained(model, open_checkpoint(tmp_path / 'weights.pth'))


@pytest.mark.filterwarnings('ignore::UserWarning')  # of torch, about these tensors
@pytest.mark.parametrize(
    ('name', 'damage'),
    [
        ('cls_token', lambda value: torch.nested.nested_tensor([value.flatten(), torch.ones(2)])),
        (
            'position._extra_state',
            lambda value: torch.quantize_per_tensor(value.float(), 0.1, 0, torch.qint8),
        ),
    ],
)
def test_tensors_that_are_not_plain_raise_in_load_state_dict(tiny, name, damage):
    state = VisionTransformer(**tiny).state_dict()
    with rejects(f'{name}.* is sparse, quantized, nested or complex'):
        VisionTransformer(**tiny).load_state_dict({**state, name: damage(state[name])})
