"""Run a Slurm of two nodes on this machine, from Debian's packages, without installing them.

    apt-get install --download-only -o Dir::Cache::archives=FOLDER slurmctld slurmd slurm-client
    for package in FOLDER/*.deb; do dpkg -x $package FOLDER; done
    export SLURM_PACKAGES=FOLDER

It must run as root. Its partitions are ``low`` and ``high``; a job in ``high`` preempts one in
``low``.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

# slurm.conf. Both nodes are daemons on this host.
CONF = """
ClusterName=tiny
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait={grace}
JobRequeue=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
PartitionName=low Nodes=n[1-2] Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime={grace}
PartitionName=high Nodes=n[1-2] PriorityTier=9 PreemptMode=OFF
"""


def packages() -> Path | None:
    """The folder with the unpacked packages. None without it, or without root."""
    folder = Path(os.environ.get('SLURM_PACKAGES', '/nonexistent'))
    return folder if (folder / 'usr/sbin/slurmctld-wlm').is_file() and os.geteuid() == 0 else None


def free_ports(count: int) -> list[int]:
    """Ports of this machine that no program uses."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(('127.0.0.1', 0))
        return [listener.getsockname()[1] for listener in sockets]


class Cluster:
    """Commands to a running Slurm.

    Args:
        folder: the folder of its configuration, state and logs.
        environment: the variables that name its programs and libraries.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, dict(environment)
        self.path = self.environment['PATH']

    def run(self, *command: str, **variables: str) -> str:
        """The output of a command such as ``squeue``."""
        done = subprocess.run(
            command,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(f'{command[0]}: {done.stderr or done.stdout}')
        return done.stdout

    def job(self, number: str) -> dict[str, str]:
        """The fields that ``scontrol`` shows of a job: JobState, Restarts and more."""
        words = self.run('scontrol', '-o', 'show', 'job', number).split()
        return dict(word.split('=', 1) for word in words if '=' in word)

    def wait_for(self, number: str, *states: str, seconds: float = 120.0) -> dict[str, str]:
        """Wait until a job is in one of the states."""
        deadline = time.monotonic() + seconds
        while (job := self.job(number))['JobState'] not in states:
            if time.monotonic() > deadline:
                raise TimeoutError(f'job {number} is {job["JobState"]} and not {states}')
            time.sleep(0.3)
        return job


@contextmanager
def running(unpacked: Path, folder: Path, grace: int = 20) -> Iterator[Cluster]:
    """A running cluster, within this context.

    Args:
        unpacked: see :func:`packages`.
        folder: an empty folder.
        grace: seconds between the signal to a preempted job and its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'state').mkdir()
    library = next(unpacked.glob('usr/lib/*/slurm-wlm'))
    ports = free_ports(3)
    conf = folder / 'slurm.conf'
    conf.write_text(
        CONF.format(
            host=socket.gethostname(), ports=ports, plugins=library, folder=folder, grace=grace
        )
    )
    environment = dict(
        os.environ,
        SLURM_CONF=str(conf),
        LD_LIBRARY_PATH=f'{library}:{library.parent}',
        PATH=f'{unpacked}/usr/bin:{os.environ["PATH"]}',
    )
    programs = [
        ['slurmctld-wlm', '-D', '-c'],
        *(
            ['slurmd-wlm', '-D', '-N', node, '-d', str(next(unpacked.rglob('slurmstepd-wlm')))]
            for node in ('n1', 'n2')
        ),
    ]
    daemons = [
        subprocess.Popen(
            [str(unpacked / 'usr/sbin' / name), *flags, '-f', str(conf)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, *flags in programs
    ]
    cluster = Cluster(folder, environment)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if 'idle 2' in cluster.run('sinfo', '-h', '-o', '%T %D'):
                    break
            except RuntimeError:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError((folder / 'slurmctld.log').read_text()[-2000:])
            time.sleep(0.5)
        yield cluster
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(30)
