"""The recipe of a pre-training on any tree of images, without labels."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from vit_plugin.arch import parse_arch
from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import base_of
from vit_plugin.models.loading import load_weights
from vit_plugin.suggestions import check_choice

from .classification import (
    budget_of,
    image_size,
    pipelines,
    read_classes,
)
from .methods import METHODS, Student
from .readers.findings import Findings
from .readers.listing import Listing, is_encodable
from .readers.photos import MOST_HEADERS, Tree, read_sizes
from .readers.records import Photo
from .recipe import Recipe, Reference
from .request import Request, counted, rounded_up
from .schedule import (
    adamw,
    batch_size_for,
    epochs_for,
    for_batch,
    training_sections,
)

LIST = 'train.txt'
BATCH = 64  # images whose features are computed at once
SHOWN = 4  # images in the picture of features
# What a checkpoint has besides the backbone.
NOT_OF_BACKBONE = ('head.{rest}', 'neck.{rest}', 'backbone.mask_token')


def pretraining_recipe(request: Request) -> Recipe:
    """The config of a pre-training on all images of a folder but those to validate and to test.

    Raises:
        ConfigError: if the method is unknown, or does not fit the teacher; if there are no images.
    """
    name = request.method or ('distill' if request.teacher else 'mocov3')
    check_choice('--method', name, METHODS)
    if (name == 'distill') != bool(request.teacher):
        raise ConfigError(
            f'--method {name}: a teacher is needed to distill, and for nothing else; give '
            '--teacher with --method distill, or neither.'
        )
    method, found = METHODS[name], read_images(request)
    student, count = student_of(request, found), len(found.train)
    batch_size = request.batch_size or batch_size_for(count, 256, 16)
    batch_size = min(batch_size, count)
    epochs = request.epochs or epochs_for(count, batch_size, *budget_of(request))
    model = method.model(student)
    if request.teacher:
        model['teacher'] = request.teacher
    pipeline = [dict(type='vit_plugin.LoadImage'), *method.steps(student), dict(type='PackInputs')]
    rate = for_batch(1e-3, 256, batch_size)
    training = training_sections(adamw(rate), 1.0, 10, epochs, batch_size, '', None)
    sections = dict(
        **({} if request.from_scratch else dict(load_from=request.weights)),
        model=model,
        data_preprocessor=dict(type=method.pixels, **request.normalization, to_rgb=True),
        train_pipeline=pipeline,
        train_dataloader=loader_of(request, found, batch_size),
        **{key: value for key, value in training.items() if key not in ('val_cfg', 'test_cfg')},
    )
    text = (
        f'{counted(count, "image")} without labels, by {name}. {counted(epochs, "epoch")} of '
        f'{counted(count // batch_size, "step")}, images of {student.size} x {student.size} pixels.'
    )
    bases = ['_base_/default_runtime.py'] + [f'_base_/selfsup/{method.base}.py'] * bool(method.base)
    files = {LIST: found.as_lines(found.train, labeled=False)}
    return Recipe(text, sections, [base_of(base) for base in bases], found, files)


def read_images(request: Request) -> Listing:
    """All images of a folder, without labels. Those of a part to validate or to test are left out.

    Raises:
        ConfigError: if there are fewer than two.
    """
    tree, findings = Tree(request.data), Findings()
    photos = []
    for path in tree.images:
        name = str(path.absolute())
        if tree.split(path) in ('val', 'test'):
            findings.note('images left out, which are to validate or to test', path)
        elif not is_encodable(name) or name.splitlines() != [name]:
            findings.note('images left out, whose names are no line of text', ascii(name))
        else:
            photos.append(Photo(path))
    photos = read_sizes(photos, findings) if len(photos) <= MOST_HEADERS else photos
    if len(photos) < 2:
        raise ConfigError(
            f'--data: {request.data!r} has {counted(len(photos), "image")} to learn from, and two '
            'are the least; give another folder.'
        )
    parts: dict[Any, list[Photo]] = dict(train=photos, val=[], test=[])
    return Listing('images without labels', tree.folder, (), parts, False, findings)


def student_of(request: Request, found: Listing) -> Student:
    """The backbone of a request, for images of these sizes."""
    size = request.img_size or image_size(request, found)
    stem = request.meta_backbone(size).patch_embed
    size = rounded_up(size, stem.stride)
    backbone = dict(request.backbone(size), img_size=size)
    return Student(
        dict(type='vit_plugin.VisionTransformer', **backbone),
        parse_arch(backbone['arch']).embed_dims,
        size,
        stem.stride,
        bool(stem.feature_channels),
        not request.no_flip,
    )


def loader_of(request: Request, found: Listing, batch_size: int) -> dict[str, Any]:
    """The images in batches of one size, since the last one of an epoch may be too small."""
    dataset = dict(
        type='CustomDataset',
        data_prefix=str(found.root),
        ann_file=f'{request.absolute_work_dir}/{LIST}',
        with_label=False,
        pipeline=Reference('train_pipeline'),
    )
    return dict(
        batch_size=batch_size,
        drop_last=True,
        collate_fn=dict(type='default_collate'),
        sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
        dataset=dataset,
    )


class Probe:
    """A backbone before and after its pre-training.

    Args:
        request: the pre-training.
        checkpoint: what it ended with.
    """

    def __init__(self, request: Request, checkpoint: str) -> None:
        self.request, self.checkpoint = request, checkpoint
        self.images = read_images(request)
        student = student_of(request, self.images)
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            self.prepare = Compose(pipelines(request, student.size, few_steps=False)[1])
            pixels = dict(request.normalization, to_rgb=True)
            self.cfg = dict(
                type='ImageClassifier', backbone=student.backbone, data_preprocessor=pixels
            )

    def models(self) -> Iterator[nn.Module]:
        """The model before, and the same one after the pre-training."""
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            model = MODELS.build(self.cfg)
        for source in (self.request.weights, self.checkpoint):
            if source:
                load_weights(model, source, skip=NOT_OF_BACKBONE)
            yield model

    def nearest_neighbors(self) -> list[float]:
        """The accuracies in per cent of nearest neighbors by features before and after.

        They are those of images to validate or to hold out, in a folder of folders of classes. For
        any other folder there are none.
        """
        from vit_plugin.measure.probing import NEIGHBORS, features_of, probe

        try:
            found = read_classes(self.request)
        except ConfigError:  # of a tree that has no classes
            return []
        if found.multi_label or len(found.train) < NEIGHBORS:
            return []
        scores = []
        for model in self.models():
            train, val = (
                features_of(model, samples_of(found, part, self.prepare))
                for part in (found.train, found.val)
            )
            scores.append(probe(train, val, ['knn'])['knn'])
        return scores

    def draw(self, path: Path) -> None:
        """Draw features of a few images before and after, in colors."""
        from vit_plugin.report.pictures import draw_feature_colors, feature_colors, patch_features
        from vit_plugin.report.pictures.style import save_figure

        photos = self.images.train
        photos = photos[:: -(-len(photos) // SHOWN)]
        data = pseudo_collate([self.prepare(dict(img_path=str(one.path))) for one in photos])
        images = [one.flip(0).permute(1, 2, 0).numpy() for one in data['inputs']]
        colors = [
            feature_colors(list(patch_features(model, model.data_preprocessor(data)['inputs'])))
            for model in self.models()
        ]
        save_figure(draw_feature_colors(images, *colors, titles=('image', 'before', 'after')), path)


def samples_of(found: Listing, part: Sequence[Photo], prepare: Callable) -> Iterator[Any]:
    """Labeled images in batches, each after the steps of a test."""
    numbers = {name: number for number, name in enumerate(found.classes)}
    for first in range(0, len(part), BATCH):
        photos = part[first : first + BATCH]
        samples = [dict(img_path=str(p.path), gt_label=numbers[p.labels[0]]) for p in photos]
        yield pseudo_collate([prepare(sample) for sample in samples])
