"""A classifier or backbone that learns from a frozen teacher, with or without labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import NotNegative, Typed
from vit_plugin.errors import ConfigError
from vit_plugin.models.heads.distilled_head import DistilledViTClsHead
from vit_plugin.models.protocol import Backbone
from vit_plugin.registry import MODELS, needed_class

from .compared_outputs import Outputs, outputs_of
from .losses import DistillationLoss
from .teacher import Pixels, Teacher, TeacherCfg

ImageClassifier: Any = needed_class('Distiller', 'mmpretrain.models.classifiers:ImageClassifier')
FALLBACK_SIDE = 224  # image side in pixels if neither teacher nor student states one
Channels = Mapping[str, int | None]


@MODELS.register_module()
class Distiller(ImageClassifier):
    """MMPretrain's ``ImageClassifier`` that learns from a frozen teacher.

    The student is this model's backbone, with or without a neck and a head. So its checkpoint is
    that of a classifier, and predicts without the teacher. The teacher gets the same augmented and
    mixed images as the student (arXiv:2106.05237), with its own normalization and size.

    Args:
        backbone: the student, one of our backbones; for other models,
            :class:`~vit_plugin.models.TimmBackbone`.
        teacher: ``timm://NAME``, ``hf://NAME``, a checkpoint, the folder of a run, the config of a
            model, or a dict of :class:`~vit_plugin.projects.distillation.teacher.TeacherCfg`. None:
            prediction only.
        losses: configs of distillation losses: ``LogitDistillation``, ``VectorDistillation``,
            ``MapDistillation``, ``GramDistillation`` and ``SimilarityDistillation``, each at most
            once. None is needed with the head ``DistilledViTClsHead``, whose distillation token
            learns from the teacher.
        label_weight: factor of the head's own loss. 0 ignores the labels.
        **kwargs: further arguments of ``ImageClassifier``, such as ``neck``, ``head`` and
            ``data_preprocessor``.

    Raises:
        ConfigError: if the teacher cannot be read, lacks an output that a loss compares, or has
            other classes; if no loss learns from it; or if the backbone is not one of ours.
    """

    def __init__(
        self,
        backbone: Typed | nn.Module,
        teacher: str | TeacherCfg | Typed | None = None,
        losses: Sequence[Typed] = (),
        label_weight: NotNegative = 1.0,
        **kwargs: Any,
    ) -> None:
        preprocessor = kwargs.get('data_preprocessor')
        if isinstance(preprocessor, Mapping) and not kwargs.get('train_cfg'):
            # Built here, since MMPretrain would pass batch_augments=None, which preprocessors for
            # several views do not take.
            default = dict(type='mmpretrain.ClsDataPreprocessor')
            kwargs['data_preprocessor'] = MODELS.build({**default, **preprocessor})
        with as_config_error('Distiller'):
            super().__init__(backbone, **kwargs)
        if not isinstance(self.backbone, Backbone) or not self.backbone.channels:
            raise ConfigError(
                f'Distiller: the backbone {type(self.backbone).__name__} does not report '
                'its channels; take a vit_plugin.VisionTransformer, or vit_plugin.TimmBackbone for '
                'another model.'
            )
        self.label_weight, self.pixels = label_weight, Pixels.of_model(self)
        self.teacher = None if teacher is None else Teacher(teacher)
        self.losses = nn.ModuleDict()
        if self.teacher:
            self.losses.update(self._build_losses(self.teacher, losses))

    def frozen_models(self) -> list[nn.Module]:
        """The teacher, which a run shards and compiles like the student."""
        return [self.teacher.module] if self.teacher else []

    def loss(self, inputs: Tensor, data_samples: list | None = None) -> dict[str, Tensor]:
        """The loss of the head, if there is one, and a loss for each of ``losses``.

        Args:
            inputs: normalized images (B, C, H, W).
            data_samples: data samples with the labels. Not needed without a head, or with
                ``label_weight=0``.

        Raises:
            ConfigError: if there is no teacher, or if there are several views of each image.
        """
        if self.teacher is None or not isinstance(inputs, Tensor):
            missing = 'a teacher' if self.teacher is None else 'one view of each image'
            raise ConfigError(f'Distiller: {missing} is needed to train; give it in the config.')
        teacher = self.teacher(inputs, self.pixels)
        student = outputs_of(self, inputs)
        losses = self._label_losses(student, teacher, data_samples)
        return losses | {
            f'loss_{name}': loss(student, teacher) for name, loss in self.losses.items()
        }

    def _label_losses(
        self, student: Outputs, teacher: Outputs, data_samples: Any
    ) -> dict[str, Tensor]:
        """The losses of the head, those of its distillation token among them."""
        if self.head is None or not self.label_weight:
            return {}
        options = dict(teacher=teacher.logits) if self._has_token else {}
        losses = self.head.loss(student.features, data_samples, **options)
        return {**losses, 'loss': self.label_weight * losses['loss']}

    def _build_losses(self, teacher: Teacher, cfgs: Sequence[Typed]) -> dict[str, nn.Module]:
        """Build the losses.

        The keys are the names of their classes in lower case, without ``Distillation``.
        """
        channels = self.backbone.channels[-1]
        student_channels = dict(
            vector=getattr(self.head, 'in_channels', channels),
            map=channels,
            logits=getattr(self.head, 'num_classes', None),
        )
        size = (
            getattr(self.backbone, 'img_size', None)
            or teacher.size
            or (FALLBACK_SIDE, FALLBACK_SIDE)
        )
        teacher_channels = teacher.channels(self.backbone.in_channels, size)
        if self._has_token:
            check_pair('DistilledViTClsHead', 'logits', student_channels, teacher_channels)
        elif not cfgs:
            raise ConfigError('Distiller: nothing is learned from the teacher; give losses.')
        built: dict[str, nn.Module] = {}
        for cfg in cfgs:
            loss_type: Any = (
                MODELS.get(cfg['type']) if isinstance(cfg['type'], str) else cfg['type']
            )
            name = loss_type.__name__.removesuffix('Distillation').lower()
            if not issubclass(loss_type, DistillationLoss) or name in built:
                fault = 'twice' if name in built else 'which compares no outputs of two models'
                raise ConfigError(
                    f'Distiller: losses has {loss_type.__name__}, {fault}; leave it out.'
                )
            compared = check_pair(
                loss_type.__name__, loss_type.compares, student_channels, teacher_channels
            )
            built[name] = MODELS.build(dict(cfg, type=loss_type), default_args=compared)
        return built

    @property
    def _has_token(self) -> bool:
        """True if the head's second classifier learns from the teacher's logits."""
        return isinstance(self.head, DistilledViTClsHead) and self.head.distillation != 'none'


def check_pair(owner: str, output: str, student: Channels, teacher: Channels) -> dict[str, Any]:
    """The arguments ``channels`` and ``teacher_channels`` of a loss.

    Args:
        owner: the class that compares outputs, for messages.
        output: the name of the output that it compares.
        student, teacher: channels of each output. None if the model lacks it.

    Raises:
        ConfigError: if one of the two lacks the output, or if their numbers of classes differ.
    """
    for who, channels in (('student', student), ('teacher', teacher)):
        if channels[output] is None:
            raise ConfigError(
                f'Distiller: {owner} compares the {output} of both, but the {who} has none; leave '
                f'it out, or give another {who}.'
            )
    if output == 'logits' and student[output] != teacher[output]:
        raise ConfigError(
            f'Distiller: {owner} compares logits, but the student has {student[output]} classes '
            f'and the teacher {teacher[output]}; give a teacher of the same classes, or learn its '
            'features with VectorDistillation.'
        )
    return dict(channels=student[output], teacher_channels=teacher[output])
