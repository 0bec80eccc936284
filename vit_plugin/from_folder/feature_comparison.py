"""Compare the features of a backbone before and after pre-training, by accuracy and as colors."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from anyfolder.readers.listing import Listing
from anyfolder.readers.records import ImageRecord
from vit_plugin.errors import ConfigError
from vit_plugin.models.loading import load_weights

from .classifier_images import evaluation_pipeline, read_classes
from .pretraining import Pretraining

FEATURE_BATCH = 64  # images per batch when features are computed
FEATURE_IMAGES = 4  # images in the picture of features
# Names in a checkpoint that are not of the backbone, as patterns of load_weights; `{rest}` matches
# the rest of a name.
NOT_OF_BACKBONE = ('head.{rest}', 'neck.{rest}', 'bbox_head.{rest}', 'backbone.mask_token')


class FeatureComparison:
    """Compares the features of a backbone before and after pre-training.

    Args:
        recipe: the pre-training.
        checkpoint: the final checkpoint.
    """

    def __init__(self, recipe: Pretraining, checkpoint: str) -> None:
        self.recipe, self.checkpoint = recipe, checkpoint
        start, spec = recipe.start, recipe.spec
        self.records = recipe.listing.train  # reading them finds the window of their values
        steps = evaluation_pipeline(start, spec.size)
        if window := recipe.probes.window:  # the training applies it, too
            steps[0] = dict(type='vit_plugin.LoadImage', window=window)
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            self.prepare = Compose(steps)
            pixels = dict(start.normalization, to_rgb=True)
            self.cfg = dict(
                type='ImageClassifier', backbone=spec.backbone, data_preprocessor=pixels
            )

    def models(self) -> Iterator[nn.Module]:
        """Yield a model with the weights before the pre-training, then with those after it.

        It is one object, whose weights are replaced: use it before taking the next.
        """
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            model = MODELS.build(self.cfg)
        for source in (self.recipe.start.opened, self.checkpoint):
            if source:  # None: the pre-training began from scratch
                load_weights(model, source, skip=NOT_OF_BACKBONE)
            yield model

    def nearest_neighbors(self) -> list[float]:
        """The accuracies in per cent of nearest neighbors by features before and after.

        Measured on the validation or held-out images of a folder with class folders. Empty for any
        other folder, for images with several classes, for too few images, and if a held-out class
        has no training images.
        """
        from vit_plugin.measure.probing import NEIGHBORS, compute_features, probe

        try:
            listing = read_classes(self.recipe.tree(), self.recipe.request)
        except ConfigError:  # the folder has no classes
            return []
        if listing.multi_label or len(listing.train) < NEIGHBORS:
            return []
        if any(record.labels[0] not in listing.numbers for record in listing.val):
            return []
        scores = []
        for model in self.models():
            train, val = (
                compute_features(model, load_labeled_batches(listing, records, self.prepare))
                for records in (listing.train, listing.val)
            )
            scores.append(probe(train, val, ['knn'])['knn'])
        return scores

    def draw(self, path: Path) -> None:
        """Draw the features of a few images before and after, as colors."""
        from vit_plugin.report.pictures import draw_feature_colors, feature_colors, patch_features
        from vit_plugin.report.pictures.figure_files import save_figure

        records = self.records[:: math.ceil(len(self.records) / FEATURE_IMAGES)]
        data = pseudo_collate([self.prepare(dict(img_path=str(record.path))) for record in records])
        images = [image.flip(0).permute(1, 2, 0).numpy() for image in data['inputs']]
        colors = [
            feature_colors(list(patch_features(model, model.data_preprocessor(data)['inputs'])))
            for model in self.models()
        ]
        save_figure(draw_feature_colors(images, *colors, titles=('image', 'before', 'after')), path)


def load_labeled_batches(
    listing: Listing, records: Sequence[ImageRecord], prepare: Callable
) -> Iterator[Any]:
    """Labeled images after the test transforms, in batches."""
    for first in range(0, len(records), FEATURE_BATCH):
        samples = [
            dict(img_path=str(record.path), gt_label=listing.numbers[record.labels[0]])
            for record in records[first : first + FEATURE_BATCH]
        ]
        yield pseudo_collate([prepare(sample) for sample in samples])
