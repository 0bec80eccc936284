"""Choose the writer of an ``--out`` by its suffix: a table, or else a folder of pictures."""

from collections.abc import Sequence
from pathlib import Path

from .inputs import Input
from .prediction_pictures import Pictures
from .prediction_tables import CsvTable, JsonLines, JsonTable, Table
from .prediction_writer import PredictionWriter

# The writer for each suffix of --out. Any other name is a folder.
TABLES: dict[str, type[Table]] = {'.json': JsonTable, '.jsonl': JsonLines, '.csv': CsvTable}


def create_writer(target: Path, inputs: Sequence[Input], score_thr: float) -> PredictionWriter:
    """The writer for a file or a folder.

    Raises:
        ConfigError: if an input would be overwritten, or if the target cannot be written.
    """
    return TABLES.get(target.suffix.lower(), Pictures)(target, inputs, score_thr)
