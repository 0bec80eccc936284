"""The same training over a grid of settings, several seeds each."""

from .grid import Member, Sweep
from .results import Row, as_markdown, collect, write_results
from .running import run_here, run_on_slurm

__all__ = ['Member', 'Row', 'Sweep', 'as_markdown', 'collect', 'run_here', 'run_on_slurm', 'write_results']
