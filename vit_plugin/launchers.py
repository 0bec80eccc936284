"""Check and translate the environment variables that a launcher sets for each process of a run."""

import os
import subprocess

from .errors import ConfigError, rejecting

DEFAULT_PORT = '29500'  # torch's default
# The variables of each launcher: rank, number of processes, rank on this machine.
VARIABLES = {
    'pytorch': ('RANK', 'WORLD_SIZE', 'LOCAL_RANK'),
    'slurm': ('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'),
    'mpi': ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_RANK'),
}


def check_launcher(launcher: str) -> None:
    """Raise a ``ConfigError`` unless this launcher started the process."""
    for variable in VARIABLES.get(launcher, ()):
        if variable not in os.environ:
            raise ConfigError(
                f'--launcher {launcher}: the environment has no {variable}, so that this process '
                'was not started by that launcher; start with tools/dist_train.sh or '
                'tools/slurm_train.sh, or leave --launcher out.'
            )


def set_rank_variables(launcher: str, port: int | str | None = None) -> None:
    """Set the variables that torch reads from those of the launcher.

    They are ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``.

    Args:
        launcher: pytorch, slurm or mpi.
        port: ``MASTER_PORT``. Default: as it is in the environment, or 29500.

    Raises:
        ConfigError: if a variable is missing, if the port is not a number from 1 to 65535, or if
            SLURM does not name the first node of the job.
    """
    check_launcher(launcher)
    for pytorch_name, launcher_name in zip(VARIABLES['pytorch'], VARIABLES[launcher], strict=True):
        os.environ[pytorch_name] = os.environ[launcher_name]
    os.environ['MASTER_PORT'] = str(port or os.environ.get('MASTER_PORT', DEFAULT_PORT))
    if not os.environ['MASTER_PORT'].isdecimal() or not 0 < int(os.environ['MASTER_PORT']) < 2**16:
        raise ConfigError(
            f'MASTER_PORT={os.environ["MASTER_PORT"]!r} must be a number from 1 to 65535.'
        )
    if launcher == 'slurm' and 'MASTER_ADDR' not in os.environ:
        # Rank 0 runs on the first node of the job.
        with rejecting(
            '--launcher slurm: the first node of the job cannot be found out',
            'set MASTER_ADDR to its address',
            (OSError, LookupError, subprocess.CalledProcessError),
        ):
            os.environ['MASTER_ADDR'] = subprocess.run(
                ['scontrol', 'show', 'hostnames', os.environ['SLURM_NODELIST']],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split()[0]
    if 'MASTER_ADDR' not in os.environ:
        raise ConfigError(
            f'--launcher {launcher}: the environment has no MASTER_ADDR; set it to that of rank 0.'
        )
