"""The replacement of MMPretrain's ``ImageClassifier``."""

from typing import Any

from mmengine.model import BaseModel
from mmengine.registry import MODELS, DefaultScope
from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig
from vit_plugin.arguments.foreign import Part
from vit_plugin.registry import CLASSIFIER_SCOPE


def build_component(part: Any) -> Any:
    """Build a component of a model, or return it if it is a module or None.

    Its config belongs to the current default scope, else to that of classifiers.
    """
    if part is None or isinstance(part, nn.Module):
        return part
    scope = None if DefaultScope.get_current_instance() else CLASSIFIER_SCOPE
    with MODELS.switch_scope_and_registry(scope) as registry:
        return registry.build(part)


class ImageClassifier(BaseModel):
    """Images -> features of a backbone and a neck -> the losses or predictions of a head.

    Args:
        backbone, neck, head: their configs, or modules.
        train_cfg: the default of the preprocessor's ``batch_augments``.
        data_preprocessor: by default a ``ClsDataPreprocessor``.
        init_cfg: MMEngine's initialization config.

    Shape: (N, C, H, W) -> the output of the head, or the features if there is no head.
    """

    def __init__(
        self,
        backbone: Part,
        neck: Part | None = None,
        head: Part | None = None,
        train_cfg: dict | None = None,
        data_preprocessor: Part | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        if not isinstance(data_preprocessor, nn.Module):
            augments = dict(batch_augments=train_cfg) if train_cfg else {}
            data_preprocessor = build_component(
                dict(type='ClsDataPreprocessor') | augments | dict(data_preprocessor or {})
            )
        super().__init__(data_preprocessor, init_cfg)
        self.backbone = build_component(backbone)
        self.neck, self.head = build_component(neck), build_component(head)

    @property
    def with_neck(self) -> bool:
        """Whether there is a neck."""
        return self.neck is not None

    @property
    def with_head(self) -> bool:
        """Whether there is a head."""
        return self.head is not None

    def extract_feat(self, inputs: Tensor) -> Any:
        """The features, which are the input of the head."""
        features = self.backbone(inputs)
        return self.neck(features) if self.with_neck else features

    def forward(self, inputs: Tensor, data_samples: Any = None, mode: str = 'tensor') -> Any:
        """Losses, predictions or, with ``'tensor'``, logits, by the ``mode`` of MMEngine."""
        if mode == 'loss':
            return self.loss(inputs, data_samples)
        features = self.extract_feat(inputs)
        if mode == 'predict':
            return self.head.predict(features, data_samples)
        return self.head(features) if self.with_head else features

    def loss(self, inputs: Tensor, data_samples: Any) -> dict[str, Tensor]:
        """The head's losses."""
        return self.head.loss(self.extract_feat(inputs), data_samples)


# The replacement of MMPretrain's base class, from which our own classifiers inherit.
BaseClassifier = ImageClassifier
