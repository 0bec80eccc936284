"""Recipe of a task with a choice of models (``--model``).

A model is a ``TaskModel``, found by its name in the ``models`` of a task or project, see
:func:`~.choices.models_of`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any, ClassVar

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel, has_entries
from vit_plugin.errors import ConfigError

from .choices import models_of
from .continued import adapt_model, describe_weights
from .multispectral import multispectral_backbone
from .request import Request
from .schedule import CONTINUED_DETECTOR, SLOWER_BACKBONE, SLOWER_STEM, Schedule
from .task_recipe import TaskRecipe

# Tasks whose complete models can be trained further.
CONTINUED_TASKS: tuple[str, ...] = ('detection', 'instance', 'segmentation')
# Schedules of detection and dense prediction, by StartingPoint.schedule_key.
DENSE_SCHEDULES = dict(
    small=Schedule(
        steps=1000, epochs=(12, 72), batch=(4, 4), rate=5e-4, rate_batch=4, schedule_epochs=12
    ),
    scratch=Schedule(
        steps=2000, epochs=(12, 72), batch=(4, 4), rate=5e-4, rate_batch=4, schedule_epochs=12
    ),
    stem=Schedule(
        steps=1000,
        epochs=(12, 72),
        batch=(4, 4),
        rate=5e-4,
        rate_batch=4,
        schedule_epochs=12,
        rate_factors=SLOWER_STEM,
    ),
    fine_tuned=Schedule(
        steps=2000,
        epochs=(12, 36),
        batch=(4, 4),
        rate=5e-4,
        rate_batch=4,
        schedule_epochs=12,
        layer_decay=0.8,
        rate_factors=SLOWER_BACKBONE,
    ),
)
# Repeats the hooks of _base_, since lists are not merged.
REPORT_HOOKS: Sequence[Mapping[str, Any]] = (
    dict(type='vit_plugin.ReportHook'),
    dict(type='vit_plugin.ProgressHook'),
)


class ModelRecipe(TaskRecipe):
    """Recipe of a task with a choice of models.

    Attributes:
        runtime: the file of ``_base_`` with the framework's hooks and logging.
        schedule_overrides: changed fields of :data:`DENSE_SCHEDULES`, by its keys.
        task_sections: sections of the config that the task adds. :attr:`additional_sections` has
            these, and the imports and hooks of the model.

    Raises:
        ConfigError: if there is no such model, or if the weights are of another complete model.
    """

    # Overrides attributes of TaskRecipe, which describes them.
    continued_tasks = CONTINUED_TASKS
    runtime: ClassVar[str]
    schedule_overrides: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    task_sections: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, request: Request, decode_all: bool = False) -> None:
        models = models_of(request.task)  # name -> its TaskModel, as 'module:NAME'
        self.name = request.model or next(iter(models))
        if self.name in models:  # `super` rejects an unknown name
            self.task_model: TaskModel = resolve_name(models[self.name])
            # Before mmdet, since vit_plugin.detection among them replaces ops that mmdet imports.
            self.packages = (*self.task_model.imports, *self.packages)
            self.named_arch = self.task_model.arch
        super().__init__(request, decode_all)
        if self.start.wrapped and not self.task_model.allows_wrapped:
            raise self.start.wrapped_error(f'--model {self.name}')
        saved = self.start.continued
        # Entries that identify a complete model of this kind. type=None matches no model.
        entries = self.task_model.saved_entries or dict(type=None)
        if saved and request.model and not has_entries(saved.cfg.model.to_dict(), entries):
            raise ConfigError(
                f'--model {request.model}: --weights {request.weights!r} are of another complete '
                'model; leave --model out, or give --arch to take its backbone alone.'
            )

    @property
    def loads_model(self) -> bool:  # type: ignore[override]
        """True if the weights are of a complete model."""
        return self.start.continued is not None

    @property
    def schedules(self) -> Mapping[str, Schedule]:  # type: ignore[override]
        """The schedules of the model."""
        if self.start.continued:
            return dict(fine_tuned=CONTINUED_DETECTOR)
        return {
            key: schedule._replace(
                **{**self.schedule_overrides.get(key, {}), **self.task_model.schedules.get(key, {})}
            )
            for key, schedule in DENSE_SCHEDULES.items()
        }

    @property
    def bases(self) -> Sequence[str]:  # type: ignore[override]
        """The model's config in its framework, and the runtime."""
        if self.task_model.base and not self.start.continued:
            return [f'mmdet::_base_/models/{self.task_model.base}', self.runtime]
        return [self.runtime]

    @property
    def additional_sections(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Sections, imports and hooks that the task, the model and mixed images add."""
        sections: Section = {**self.task_sections}
        hooks = [] if self.start.continued else [*self.task_model.hooks]
        if self.mixing:
            hooks += self.mixing.hooks
        # A continued model with queries has losses of MMDetection, also in other frameworks.
        imports = ['vit_plugin.detection'] if self.start.continued else [*self.task_model.imports]
        if imports:
            sections['custom_imports'] = dict(imports=imports)
        if hooks:
            sections['custom_hooks'] = [*REPORT_HOOKS, *hooks]
        return sections

    def summary(self) -> str:
        """The images, the length of the training and the model."""
        model = f'The model is {self.task_model.title}.'
        if saved := self.start.continued:
            model = describe_weights(saved, self.listing.classes, str(self.request.weights))
        return f'{super().summary()} {model}'

    @property
    def padding(self) -> Section:
        """The padding arguments of the ``data_preprocessor``, for new and for continued models."""
        raise NotImplementedError

    def new_model(self) -> Section:
        """The section ``model`` of a new model for these images."""
        raise NotImplementedError

    def model(self) -> Section:
        """A complete model adapted to the classes of the data, or a new one."""
        if not self.start.continued:
            return self.new_model()
        model = adapt_model(self.start.continued, self.listing)
        model['data_preprocessor'] |= self.padding
        return model

    def backbone_arguments(self, without_token: bool = True, **more: Any) -> Section:
        """Arguments of the backbone of a new model.

        Args:
            without_token: whether to leave out the class token. An arch ``timm://NAME`` decides
                that itself.
            **more: further arguments.
        """
        start = self.start
        backbone = multispectral_backbone(start, min(self.size), self.listing.bands)
        arguments = {**backbone, **more}
        if start.weights and not (start.arch or start.wrapped):
            # A run that states none was trained with the default, whatever a model prefers.
            arguments.setdefault('numerics', None)
        if start.wrapped:
            arguments.pop('out_type', None)
        elif without_token and not start.arch.startswith('timm://'):
            arguments['with_cls_token'] = False
        return arguments

    def facts(self, size: tuple[int, int], without_token: bool = True, **more: Any) -> ModelFacts:
        """The facts that a new model is built from, see :class:`TaskModel`.

        Args:
            size: height and width of the images.
            without_token: see :meth:`backbone_arguments`.
            **more: further fields of the facts.
        """
        arguments = self.backbone_arguments(without_token)
        arguments.pop('out_type', None)
        arguments = self.start.for_size(arguments, size, sizes_vary=True)
        build = partial(self.start.build_meta_backbone, min(self.size), **arguments)
        return ModelFacts(len(self.listing.classes), size, arguments, build, **more)

    def complete_model(self, facts: ModelFacts, preprocessor: Mapping[str, Any]) -> Section:
        """The section ``model`` built from these facts, with its weights and this preprocessor."""
        model = self.task_model.build(facts)
        if not self.start.from_scratch:
            weights = dict(type='Pretrained', checkpoint=self.start.weights)
            model['backbone']['init_cfg'] = weights
        if self.task_model.base:
            # These sections replace those of the base; all others are merged into them. The neck of
            # the base is an FPN.
            replaced = ('backbone',) if model['neck']['type'] == 'FPN' else ('backbone', 'neck')
            model |= {name: dict(_delete_=True, **model[name]) for name in replaced}
        return dict(data_preprocessor=dict(preprocessor), **model)
