"""The model card, a folder's ``README.md``, from the files in a run's folder without any guess."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vit_plugin.files.untrusted_text import escape_markdown, markdown_code, markdown_table
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.report.data_table import data_table
from vit_plugin.report.pictures.class_scores import scores_as_markdown
from vit_plugin.task import tasks
from vit_plugin.weights.hub_files import weights_in
from vit_plugin.weights.licenses import PERMISSIVE
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.provenance import Provenance, initial_weights
from vit_plugin.weights.saved_settings import read_settings

from .libraries import Library
from .run_files import read_json, read_picture

CARD_PICTURES = ('learning_curve.png', 'confusion_matrix.png', 'precision_recall.png')
ENCODER_TASK = 'image-feature-extraction'  # the task of a model without a head
DEPTH_TASK = 'depth-estimation'  # the task whose metrics are meters and ratios
HUB_LICENSES = PERMISSIVE - {'public-domain'}  # names that a record and the hub share
MAX_CARD_CLASSES = 50  # limit of class names in a card
USAGE = """import vit_plugin

print(vit_plugin.load('hf://{name}')('photo.jpg'))"""


@dataclass
class Card:
    """The text of a ``README.md`` for the hub.

    Attributes:
        trained: the model.
        checkpoint: its path. The files of its run, such as ``metrics.json``, are next to it.
        name: ``USER/NAME``.
        library: another library that reads the folder, or None.
        difference: how much the outputs of ``library`` differ, see
            :func:`~vit_plugin.deploy.hub.written_task.difference`.
        license: the hub's name of the license. None: that of ``record``.
        record: where the weights come from.
        pictures: the PNG pictures of the run, by name.

    Raises:
        ConfigError: if a file of the run is a link or not what its name says, see
            :mod:`~vit_plugin.deploy.hub.run_files`.
    """

    trained: TrainedModel
    checkpoint: str
    name: str
    library: Library | None
    difference: float
    license: str | None
    record: Provenance

    def __post_init__(self) -> None:
        self.run_folder = Path(self.checkpoint).parent
        self.metrics = read_json(self.run_folder, 'metrics.json')
        self.scores = read_json(self.run_folder, 'classes.json')
        self.report = read_json(self.run_folder, 'data_report.json')
        drawn = {name: read_picture(self.run_folder, name) for name in CARD_PICTURES}
        self.pictures = {name: picture for name, picture in drawn.items() if picture}

    def text(self) -> str:
        """The card."""
        sections = (
            self._head(),
            self._use(),
            self._results(),
            self._data(),
            self._training(),
            self._terms(),
        )
        return '\n'.join(line for section in sections for line in (*section, '')).rstrip() + '\n'

    def _task(self) -> str:
        """The hub's name of the model's task."""
        # Detectors and segmentors have no `head`. A classifier without a head has None.
        has_head = getattr(self.trained.model, 'head', self) is not None
        return tasks()[self.trained.task].hub if has_head else ENCODER_TASK

    def _head(self) -> Iterator[str]:
        """The metadata in YAML, which the hub reads, and the title."""
        task, title = self._task(), self.name.rpartition('/')[2]
        yield '---'
        yield f'library_name: {self.library.name if self.library else "vit_plugin"}'
        yield f'pipeline_tag: {task}'
        # The record's license may be any text, and the hub refuses all but its own names.
        license = self.record.license if self.record.license in HUB_LICENSES else ''
        if license := self.license or license:
            yield f'license: {license}'
        yield 'tags: [vit_plugin, vision-transformer]'
        if self.metrics.get('last'):
            yield from (
                'model-index:',
                f'- name: {json.dumps(title)}',
                '  results:',
                f'  - task: {{type: {task}}}',
                '    dataset: {type: custom, name: held out of the data of the run}',
                '    metrics:',
            )
            for name, value in self.metrics['last'].items():
                yield f'    - {{type: {json.dumps(name)}, value: {value:.4g}}}'
        yield from ('---', '', f'# {title}', '')
        model, backbone = self.trained.model, self.trained.cfg.model.get('backbone') or {}
        arch = backbone.get('arch')
        count = sum(parameter.numel() for parameter in model.parameters())
        name = arch if isinstance(arch, str) else backbone.get('type')
        on_backbone = f' on {markdown_code(name)}' if name else ''
        yield (
            f'{type(model).__name__}{on_backbone}, {count / 1e6:.2f} M parameters, trained '
            'with [vit_plugin](https://pypi.org/project/vit_plugin).'
        )

    def _use(self) -> Iterator[str]:
        yield from ('## Use', '', '```python', USAGE.format(name=self.name), '```')
        if self.library:
            example = self.library.example.format(
                name=self.name, timm=f'hf_hub:{self.name}', task=self._task()
            )
            yield from ('', '```python', example, '```', '')
            yield (
                f'The outputs of {self.library.name} differ by up to {self.difference:.0e} of the '
                'largest on random pixels. It resizes images by Pillow, whose pixels may differ '
                'from those of the run a little.'
            )
        if names := self.trained.classes:
            text = ', '.join(map(escape_markdown, names[:MAX_CARD_CLASSES]))
            if len(names) > MAX_CARD_CLASSES:
                text += f' and {len(names) - MAX_CARD_CLASSES} more'
            yield from ('', f'{len(names)} classes: {text}.')

    def _results(self) -> Iterator[str]:
        yield from ('## Results', '')
        if not self.metrics.get('last'):
            yield 'The folder of the run has no record of a validation.'
            return
        of_depth = self._task() == DEPTH_TASK
        title, digits = ('validation', '.4g') if of_depth else ('validation, per cent', '.2f')
        rows = [[title, 'last', 'best']]
        for name, value in self.metrics['last'].items():
            best = self.metrics['best'][name]
            rows.append([escape_markdown(name), f'{value:{digits}}', f'{best:{digits}}'])
        yield markdown_table(rows, numbers=2)
        if self.scores:
            yield from ('', scores_as_markdown(self.scores).rstrip())
        for name in self.pictures:
            yield from ('', f'![{Path(name).stem.replace("_", " ")}]({name})')

    def _data(self) -> Iterator[str]:
        yield from ('## Data', '')
        report = self.report
        if not report:
            yield 'The folder of the run has no report of its data.'
            return
        yield f'{escape_markdown(report["form"])}, {len(report["classes"])} classes.'
        yield from ('', data_table(report['parts'], report['classes'][:MAX_CARD_CLASSES]))
        # Only counts: file names may be private.
        for finding in report['findings']:
            yield from (
                '',
                f'### {escape_markdown(finding["what"])}: {escape_markdown(finding["count"])}',
            )

    def _training(self) -> Iterator[str]:
        yield from ('## Training', '')
        if 'epochs' in self.metrics:
            yield (
                f'Epochs: {self.metrics["epochs"]}; iterations: {self.metrics["iterations"]}; '
                f'seconds: {self.metrics["seconds"]:.0f}. The weights are those of '
                f'{markdown_code(Path(self.checkpoint).name)}.'
            )
        settings = read_settings(open_checkpoint(self.checkpoint, payload=False))
        # The config in a hub folder only has the settings for prediction, so no initial weights.
        if not settings or weights_in(Path(self.checkpoint).parent):
            yield 'Its config was not found, so that it is not known what it began with.'
            return
        # Names only, without local folders.
        start_names = [
            markdown_code(source if '://' in source else Path(source).name)
            for source in dict.fromkeys(source for _, source in initial_weights(settings))
        ]
        names = ', '.join(start_names) or 'no weights'
        yield f'The config of the training names {names} to begin with.'

    def _terms(self) -> Iterator[str]:
        yield from ('## License', '')
        license = self.license or self.record.license
        stated = markdown_code(license) if license else 'Not stated by who uploaded this'
        yield f'{stated}. Weights and data that it began with have licenses of their own:'
        yield from ('', '| | from | license | SHA-256 |', '|---|---|---|---|')
        for depth, role, origin in self.record.walk():
            if depth:  # the first record is the model itself
                unstated = 'of what it began with' if origin.links else 'not stated'
                license = origin.license or unstated
                cells = '> ' * (depth - 1) + role, origin.source, license, origin.sha256[:16]
                yield f'| {" | ".join(map(escape_markdown, cells))} |'
