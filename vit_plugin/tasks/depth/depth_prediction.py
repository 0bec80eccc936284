"""Prediction of a depth model: as text, as a picture, as files, and from an exported file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anyfolder.pictures.drawn_labels import WHITE, colored, draw_legend, enlarged
from vit_plugin.deploy.bilinear import bilinear
from vit_plugin.inference.predictions import Prediction

DEPTH_COLUMNS = ('least', 'median', 'most')  # smallest, median and largest depth of an image


@dataclass(frozen=True)
class DepthPrediction(Prediction):
    """The depth of each pixel (H, W)."""

    depth: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    unit: str = 'm'  # unit of depth; empty for a disparity, which is larger nearby

    # Overrides attributes of Prediction, which describes them.
    output = 'depth'
    of_pixels = True
    columns = DEPTH_COLUMNS

    @classmethod
    def of_depth(cls, depth: np.ndarray, target: str, sample: Any = None) -> 'DepthPrediction':
        """The prediction of a model whose target is a ``'depth'`` or a ``'disparity'`` (H, W)."""
        no_classes = np.empty(0)
        unit = 'm' if target == 'depth' else ''
        return cls(sample, labels=no_classes, names=[], scores=no_classes, depth=depth, unit=unit)

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'pred_depth_map' in sample

    @classmethod
    def of_sample(cls, sample: Any, classes: Sequence[str], model: Any) -> 'DepthPrediction':
        depth = sample.pred_depth_map.data[0].float().numpy()
        return cls.of_depth(depth, model.decode_head.target, sample)

    @classmethod
    def facts_of(cls, model: Any) -> dict[str, Any]:
        return dict(target=model.decode_head.target)

    @classmethod
    def of_outputs(
        cls,
        outputs: Mapping[str, np.ndarray],
        size: tuple[int, int],
        placed: Any,
        facts: Mapping[str, Any],
    ) -> 'DepthPrediction | None':
        if 'depth' not in outputs:
            return None
        rows, columns = placed.unpadded_size
        depth = bilinear(outputs['depth'][0, :rows, :columns], size, align_corners=False)
        return cls.of_depth(depth, str(facts.get('target')))

    def values(self, score_thr: float) -> Iterable[Sequence[Any]]:
        return [np.quantile(self.depth, (0, 0.5, 1)).tolist()]

    def text(self, score_thr: float = 0.0) -> str:
        """The smallest, the largest and the median depth."""
        (row,) = self.rows()
        least, median, most = (f'{row[name]:.2f} {self.unit}'.strip() for name in DEPTH_COLUMNS)
        quantity = 'depth' if self.unit else 'disparity'
        return f'{quantity} from {least} to {most}, {median} in the middle'

    def drawn(self, picture: np.ndarray, times: int, score_thr: float) -> np.ndarray:
        """The depth in colors."""
        picture = colored(enlarged(self.depth, times), bool(self.unit))
        draw_legend(picture, [(self.text(), WHITE)])
        return picture

    def arrays(self) -> dict[str, np.ndarray]:
        """``NAME_depth.tiff``."""
        return {'_depth.tiff': self.depth.astype(np.float32)}

    def difference_from(self, wanted: 'DepthPrediction') -> float:
        """The largest difference, relative to the largest depth."""
        return float(np.abs(self.depth - wanted.depth).max() / np.abs(wanted.depth).max())
