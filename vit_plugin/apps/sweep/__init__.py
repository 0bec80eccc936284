"""The same training over a grid of settings, several seeds each."""

from .grid import Run, Sweep
from .jobs import run_here, run_on_slurm
from .results import Row, as_markdown, collect, write_results

__all__ = ['Row', 'Run', 'Sweep', 'as_markdown', 'collect', 'run_here', 'run_on_slurm', 'write_results']
