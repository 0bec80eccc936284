"""Calls of the tools that cannot work, and a word that the error message of each must contain.

Tables list what is wrong with configs, settings and checkpoints. Each entry makes a call of every
tool that takes such a thing; wrong flags and a full disk are added for each tool. A tool is a
command of ``vit-plugin``.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch
from mmengine.registry import MODELS, init_default_scope

from vit_plugin.config import read_config

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
# Settings that make a run short.
SHORT = [
    'train_cfg.max_epochs=1',
    'train_dataloader.dataset.indices=32',
    'val_dataloader.dataset.indices=30',
    'test_dataloader.dataset.indices=30',
    'log_level=WARNING',
]


class Call(NamedTuple):
    """A call of a tool.

    Attributes:
        tool: name of the tool.
        arguments: its command line.
        word: what the error message must contain.
        environment: further environment variables. ``'{taken}'`` stands for a port in use.
        full_disk: whether writing to files fails during the call.
    """

    tool: str
    arguments: list[str]
    word: str
    environment: dict[str, str] = {}
    full_disk: bool = False

    def __str__(self) -> str:
        words = [
            str(argument).rpartition('/')[2] for argument in self.arguments if argument not in SHORT
        ]
        if self.full_disk:
            words.append('with a full disk')
        return ' '.join([self.tool, *words])[:150]


# Name of each wrong config -> its content, and a word of the error message.
CONFIGS = {
    'syntax': ('model = dict(type=', 'syntax'),
    'name': ('model = undefined', 'undefined'),
    'zero_division': ('model = 1 / 0', 'ZeroDivision'),
    'no_base': ("_base_ = 'none.py'", 'none.py'),
    'no_host_base': ("_base_ = 'mmdet::none/none.py'", 'none'),
    'empty': ('', 'no model'),
    'only_data': ("_base_ = '{configs}/_base_/datasets/digits_bs16.py'", 'no model'),
    'import': ("_base_ = '{digits}'\ncustom_imports = dict(imports=['not_there'])", 'not_there'),
    'binary': ('\0\1\2', 'cannot be read'),
    'key_twice': ("_base_ = '{digits}'\nmodel = 3", 'model'),
}

# Wrong setting of the recipe for digits -> a word of the error message.
SETTINGS = {
    'train_cfg.max_epochs=0': 'max_epochs',
    'train_cfg.max_epochs=-3': 'max_epochs',
    'train_cfg.max_epochs=many': 'max_epochs',
    'train_cfg.max_epochs=1.5': 'max_epochs',
    'train_cfg.max_epoch=1': 'max_epochs',
    'train_cfg.val_interval=0': 'val_interval',
    'train_cfg.type=EpochBasedLoop': 'EpochBasedTrainLoop',
    'train_cfg.max_iters=3': 'max_iters',
    'train_dataloader.batch_size=0': 'batch_size',
    'train_dataloader.batch_size=-1': 'batch_size',
    'train_dataloader.batch_size=big': 'batch_size',
    'train_dataloader.batchsize=4': 'batch_size',
    'train_dataloader.num_workers=-1': 'num_workers',
    'train_dataloader.num_workers=many': 'num_workers',
    'train_dataloader.dataset.type=Digit': 'Digits',
    'train_dataloader.dataset.type=vit_plugin.Digit': 'Digits',
    'train_dataloader.dataset.split=none': 'split',
    'train_dataloader.dataset.indice=3': 'indices',
    'train_dataloader.dataset.pipeline.0.type=Rotat': 'Rotate',
    'train_dataloader.dataset.pipeline.0.magnitude_levels=3': 'magnitude_level',
    'train_dataloader.sampler.type=DefaultSample': 'DefaultSampler',
    'train_dataloader.sampler.shufle=True': 'shuffle',
    'train_dataloader.dataset=None': 'dataset',
    'train_dataloader=None': 'train_dataloader',
    'train_dataloader=3': 'train_dataloader',
    'val_evaluator.type=Acuracy': 'Accuracy',
    'val_evaluator.topk=word': 'topk',
    'val_evaluator.top=1': 'topk',
    'optim_wrapper.optimizer.type=AdamWW': 'AdamW',
    'optim_wrapper.optimizer.lr=-1': 'lr',
    'optim_wrapper.optimizer.lr=fast': 'lr',
    'optim_wrapper.optimizer.learning_rate=1': 'lr',
    'optim_wrapper.optimizer.betas=(2,2)': 'beta',
    'optim_wrapper.optimizer.weight_decay=-1': 'weight_decay',
    'optim_wrapper.type=OptimWraper': 'OptimWrapper',
    'optim_wrapper.clip_grad.max_norms=1': 'max_norm',
    'optim_wrapper.accumulative_counts=0': 'accumulative_counts',
    'optim_wrapper=None': 'optim_wrapper',
    'optim_wrapper.paramwise_cfg.layer_decay_rate=7': 'layer_decay_rate',
    'optim_wrapper.paramwise_cfg.bias_decay=0': 'bias_decay_mult',
    'optim_wrapper.constructor=None_': 'None_',
    'param_scheduler.0.type=LinearR': 'LinearLR',
    'param_scheduler.0.start_factor=7': 'start_factor',
    'param_scheduler.0.ends=3': 'end',
    'param_scheduler.7.end=3': 'param_scheduler',
    'param_scheduler=cosine': 'param_scheduler',
    'model.type=ImageClasifier': 'ImageClassifier',
    'model.backbone.type=VisionTransformr': 'VisionTransformer',
    'model.backbone.type=vit_plugin.VisionTransformr': 'VisionTransformer',
    'model.backbone.depth=3': 'depth',
    'model.backbone.arch=B/17': 'B/1',
    'model.backbone.arch=Q': 'Q',
    'model.backbone.img_size=0': 'img_size',
    'model.backbone.img_sise=8': 'img_size',
    'model.backbone.out_type=cls': 'out_type',
    'model.backbone.drop_path_rate=2': 'drop_path_rate',
    'model.backbone.out_indices=9': 'out_indices',
    'model.backbone.in_channels=3': 'channels',
    'model.head.num_classes=3': 'num_classes',
    'model.head.num_classes=-1': 'num_classes',
    'model.head.num_clases=10': 'num_classes',
    'model.head.in_channels=7': 'in_channels',
    'model.head.loss.type=LabelSmooth': 'LabelSmoothLoss',
    'model.head.type=vit_plugin.ViTHead': 'ViTClsHead',
    'model.backbon.arch=B/16': 'backbone',
    'modell.type=X': 'model',
    'default_hooks.logger.interval=0': 'interval',
    'default_hooks.loger.interval=3': 'logger',
    'default_hooks.checkpoint.save_best=acc': 'acc',
    'default_hooks.checkpoint.intervall=3': 'interval',
    'default_hooks.checkpoint.filename_tmpl={}{}.pth': 'filename_tmpl',
    'default_hooks.checkpoint.rule=smaller': 'rule',
    'default_hooks.checkpoint.save_best=[accuracy/top1,loss]': 'loss',
    'sharding.grup=2': 'group',
    'begin_form=X': 'begin_from',
    'begin_from=none.pth': 'none.pth',
    'model.head=None': 'model.head',
    'optim_wrapper.clip_grad.type=value': 'clip_value',
    'model.backbone.patch_embed.embed_dims=64': 'embed_dims',
    'default_hooks.timer.type=Timer': 'Timer',
    'randomness.seed=-1': 'seed',
    'randomness.seeds=1': 'seed',
    'env_cfg.cudnn=True': 'cudnn_benchmark',
    'log_level=LOUD': 'LOUD',
    'load_from=none.pth': 'none.pth',
    'visualizer.type=Visual': 'Visual',
    'default_scope=mmpretrained': 'mmpretrained',
    'runner_type=Runer': 'Runner',
    'data_preprocessor.mean=[1,2,3,4]': 'images',
    'data_preprocessor.num_class=10': 'num_classes',
    'nonsense': 'KEY=VALUE',
    '=3': 'KEY=VALUE',
}


def prepare(folder: Path) -> None:
    """Write valid and damaged checkpoints, images and configs, which the calls refer to."""
    cfg = read_config(DIGITS)
    init_default_scope(cfg.default_scope)
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor))
    torch.save(dict(state_dict=model.state_dict(), meta={}), folder / 'good.pth')
    content = (folder / 'good.pth').read_bytes()
    (folder / 'cut.pth').write_bytes(content[: len(content) // 2])
    (folder / 'empty.pth').write_bytes(b'')
    (folder / 'text.pth').write_text('no checkpoint')
    (folder / 'folder.pth').mkdir()
    torch.save(dict(state_dict={'other': torch.zeros(3)}, meta={}), folder / 'other.pth')
    bias = torch.full_like(model.head.layers.head.bias, float('nan'))
    torch.save(
        dict(state_dict={**model.state_dict(), 'head.layers.head.bias': bias}), folder / 'nan.pth'
    )
    torch.save(dict(state_dict=model.state_dict(), meta=[1]), folder / 'meta.pth')
    torch.save(
        dict(state_dict=model.state_dict(), meta=dict(dataset_meta=dict(classes=('a', 'b')))),
        folder / 'two.pth',
    )
    torch.save([1, 2], folder / 'list.pth')
    (folder / 'code.pth').write_bytes(pickle.dumps(Path))
    (folder / 'cut.npz').write_bytes(b'PK\3\4 and no more')
    (folder / 'cut.safetensors').write_bytes(b'\xff' * 40)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    cv2.imwrite(str(folder / 'good.png'), pixels)
    (folder / 'empty.png').write_bytes(b'')
    (folder / 'text.png').write_text('no picture')
    (folder / 'cut.png').write_bytes((folder / 'good.png').read_bytes()[:40])
    (folder / 'folder.png').mkdir()
    (folder / 'folder.pkl').mkdir()
    (folder / 'file').write_text('in the way')
    for name, (text, _) in CONFIGS.items():
        text = text.format(configs=Path('configs').resolve(), digits=Path(DIGITS).resolve())
        (folder / f'{name}.py').write_text(text)
    (folder / 'config.txt').write_text('model = 3')


# Checkpoint that can be read, but not used for predictions -> a word of the error message.
NOT_TO_PREDICT = {'other.pth': 'other.pth', 'nan.pth': 'NaN', 'meta.pth': 'meta'}
# File that cannot be read as a checkpoint or has no weights -> a word of the error message.
BAD_WEIGHTS = {
    'none.pth': 'none.pth',
    'cut.pth': 'cut.pth',
    'empty.pth': 'empty.pth',
    'text.pth': 'text.pth',
    'folder.pth': 'folder.pth',
    'list.pth': 'no weights',
    'code.pth': 'code.pth',
    'cut.npz': 'cut.npz',
    'cut.safetensors': 'cut.safetensors',
}


def calls(folder: Path, tools: tuple[str, ...]) -> Iterator[Call]:
    """The calls of some tools, with the files that :func:`prepare` wrote into a folder."""
    good = str(folder / 'good.pth')
    short = ['--cfg-options', *SHORT]
    work = ['--work-dir', str(folder / 'work')]

    # Their keyword arguments `fields` are further fields of Call.
    def train(*arguments: str, word: str, options: tuple[str, ...] = (), **fields: object) -> Call:
        config = [] if arguments and arguments[0].endswith(('.py', '.txt')) else [DIGITS]
        return Call(
            'train',
            [*config, *arguments, *([] if '--work-dir' in arguments else work), *short, *options],
            word,
            **fields,
        )

    def test(*arguments: str, word: str, **fields: object) -> Call:
        return Call('test', [*arguments, *work, *short], word, **fields)

    def infer(
        *images: str,
        word: str,
        checkpoint: str = good,
        config: str = DIGITS,
        out: str = str(folder / 'out'),
        extra: tuple[str, ...] = (),
        **fields: object,
    ) -> Call:
        return Call(
            'infer', [checkpoint, *images, '--config', config, '--out', out, *extra], word, **fields
        )

    image = str(folder / 'good.png')
    if 'train' in tools:
        for option, word in SETTINGS.items():
            yield train(word=word, options=(option,))
        for name, (_, word) in CONFIGS.items():
            yield train(str(folder / f'{name}.py'), word=word)
        yield train('configs/none.py', word='none.py')
        yield train(str(folder / 'config.txt'), word='config.txt')
        for name, word in BAD_WEIGHTS.items():
            yield train('--resume', str(folder / name), word=word)
        yield train('--resume', good, word='resume')
        yield train('--work-dir', str(folder / 'file'), word='work_dir')
        yield train('--work-dir', str(folder / 'file/x'), word='work_dir')
        yield train('--work-dir', str(folder / 'full'), word='cannot be', full_disk=True)
        yield train('--launcher', 'slurm', word='--launcher')
        yield train('--launcher', 'mpi', word='--launcher')
        yield train('--launcher', 'pytorch', word='--launcher')
        yield train(
            '--launcher',
            'pytorch',
            word='port',
            environment=dict(
                RANK='0', WORLD_SIZE='1', MASTER_ADDR='127.0.0.1', MASTER_PORT='{taken}'
            ),
        )
        yield train('--launcher', 'none_', word='--launcher')
        yield train('--resum3', word='--resum3')
    if 'test' in tools:
        for name, (_, word) in CONFIGS.items():
            yield test(str(folder / f'{name}.py'), good, word=word)
        for name, word in {**BAD_WEIGHTS, **NOT_TO_PREDICT}.items():
            yield test(DIGITS, str(folder / name), word=word)
        yield test(DIGITS, word='checkpoint')
        yield test(DIGITS, good, '--out', str(folder / 'x.txt'), word='--out')
        yield test(DIGITS, good, '--out', str(folder / 'x.yml'), word='--out')
        yield test(DIGITS, good, '--out', str(folder / 'file/x.pkl'), word='file')
        yield test(DIGITS, good, '--out', str(folder / 'folder.pkl'), word='folder.pkl')
        yield test(DIGITS, good, '--interval', '0', word='--interval')
    if 'infer' in tools:
        for name in ('none.png', 'empty.png', 'text.png', 'cut.png', 'folder.png'):
            yield infer(str(folder / name), word=name)
        for name, (_, word) in CONFIGS.items():
            yield infer(image, config=str(folder / f'{name}.py'), word=word)
        for name, word in {**BAD_WEIGHTS, **NOT_TO_PREDICT}.items():
            yield infer(image, checkpoint=str(folder / name), word=word)
        yield infer(image, checkpoint=str(folder / 'two.pth'), word='2 classes')
        yield infer(image, out=str(folder / 'file'), word='file')
        yield infer(image, out=str(folder), word='written over')
        yield infer(image, extra=('--device', 'cuda'), word='--device')
        yield infer(image, extra=('--device', 'gpu'), word='--device')
        yield infer(image, extra=('--score-thr', '7'), word='--score-thr')
        yield infer(image, extra=('--cfg-options', 'model.head.num_clases=3'), word='num_classes')
        yield infer(image, extra=('--cfg-options', 'default_scope=mmseq'), word='default_scope')
    if 'convert' in tools:
        target = str(folder / 'target.npz')
        for name, word in {**BAD_WEIGHTS, 'other.pth': 'other.pth'}.items():
            yield Call('convert', [str(folder / name), '--out', target, '--to', 'timm'], word)
        for arguments, word in (
            ([good, '--out', target, '--to', 'onnx'], '--to'),
            ([good, '--out', str(folder / 'x.txt'), '--to', 'timm'], 'x.txt'),
            ([good, '--out', good, '--to', 'vit_plugin'], 'written over'),
            ([good, '--out', str(folder / 'file/x.npz'), '--to', 'vit_plugin'], 'file'),
            ([good, '--out', str(folder / 'folder.pth'), '--to', 'vit_plugin'], 'folder'),
            ([good, '--out', target, '--to', 'jax', '--num-heads', '0'], '--num-heads'),
            ([good, '--out', target, '--to', 'jax', '--num-heads', '7'], '--num-heads'),
            ([good], '--out'),
        ):
            yield Call('convert', arguments, word)
        for suffix in ('npz', 'pth', 'safetensors'):
            target = str(folder / f'full.{suffix}')
            yield Call(
                'convert',
                [good, '--out', target, '--to', 'vit_plugin'],
                f'full.{suffix}',
                full_disk=True,
            )
    if 'export' in tools:
        target = ('--out', str(folder / 'target.onnx'))
        for name, (_, word) in CONFIGS.items():
            yield Call('export', [good, *target, '--config', str(folder / f'{name}.py')], word)
        for name, word in {**BAD_WEIGHTS, **NOT_TO_PREDICT}.items():
            yield Call('export', [str(folder / name), *target, '--config', DIGITS], word)
        for arguments, word in (
            ([good, '--out', str(folder / 'x.txt')], 'x.txt'),
            ([good, '--out', str(folder / 'file/x.pt2')], 'file'),
            ([good, *target, '--img-size', '0'], 'img-size'),
            ([good, *target, '--img-size', 'big'], '--img-size'),
            ([good, *target, '--dtype', 'int4'], '--dtype'),
        ):
            yield Call('export', arguments, word)
