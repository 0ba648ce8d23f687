"""A real Slurm of two nodes on this machine, on loopback, for as long as a test lasts.

All daemons are one ordinary user's (nobody's where the tests are root), authenticate nobody and listen on
127.0.0.1 only, so that they can do nothing that this user cannot. `munged` gives a cluster whose daemons are
root a key of its own: without it anybody on the machine could have a job run as root.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.studies.study_lab import NOBODY, SOURCES
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.processes import processes_naming

from bedplate.host.process import wait_until

NODES = ("n1", "n2")
_CONFIGURATION = """
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ClusterName=bedplatetest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
{authentication}
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/run/ctld.pid
SlurmdPidFile={base}/run/slurmd.%n.pid
SlurmctldLogFile={base}/log/ctld.log
SlurmdLogFile={base}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
PriorityType=priority/basic
ReturnToService=1
SlurmdTimeout=10
MessageTimeout=5
KillWait=10
MinJobAge=3600
SlurmdParameters=config_overrides
GresTypes=scratch_device
{nodes}
PartitionName=bench Nodes=ALL Default=YES MaxTime=600
"""
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=2000 Gres=scratch_device:1"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")


def lacking_programs() -> list[str]:
    """What of Slurm is not installed."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=places) is None]


class SlurmLab:
    """Two nodes, a controller, and a place for studies that all of them see."""

    def __init__(self, base: Path, *, as_root: bool = False) -> None:
        self.base = base
        self.before = NOBODY if os.geteuid() == 0 and not as_root else ()
        self.user = pwd.getpwuid(65534 if self.before else os.geteuid()).pw_name
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.started: list[subprocess.Popen[str]] = []
        self.munge = base / "munge.socket" if as_root else None
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SUDO"))},
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
            "SLURM_CONF": str(base / "slurm.conf"),
            "PYTHONPATH": f"{SOURCES / 'src'}:{SOURCES}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(base),
        }

    def configure(self) -> None:
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(1 + len(NODES))
        nodes = "\n".join(
            _NODE.format(name=name, host=host, port=port) for name, port in zip(NODES, ports[1:], strict=True)
        )
        authentication = "AuthType=auth/none\nCredType=cred/none"
        if self.munge is not None:
            authentication = f"AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={self.munge}"
        (self.base / "slurm.conf").write_text(
            _CONFIGURATION.format(
                host=host,
                user=self.user,
                base=self.base,
                nodes=nodes,
                controller_port=ports[0],
                authentication=authentication,
            )
        )
        (self.base / "gres.conf").write_text(
            "".join(f"NodeName={name} Name=scratch_device Count=1\n" for name in NODES)
        )
        for name in ("state", "spool", "run", "log", "studies"):
            (self.base / name).mkdir(mode=0o755)
        if self.before:
            for path in (self.base, *self.base.iterdir()):
                os.chown(path, 65534, 65534)

    def start(self) -> None:
        if self.munge is not None:
            self._start_munge(self.munge)
        self.start_daemon("slurmctld")
        for name in NODES:
            self.start_daemon(name)
        wait_until(
            lambda: 2 == self.call("sinfo", "-h", "-N", "-o", "%T").count("idle"), deadline_s=AT_MOST_S
        )

    def _start_munge(self, munge: Path) -> None:
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        # Of its socket's folder munged asks that all may pass, of everything else that nobody else may write.
        self._daemon(
            "munged",
            "munged",
            *("--foreground", "--force", f"--socket={munge}", f"--key-file={key}"),
            *(f"--pid-file={self.base}/munge.pid", f"--log-file={self.base}/munge.log"),
            f"--seed-file={self.base}/munge.seed",
        )
        assert wait_until(munge.exists, deadline_s=AT_MOST_S), (self.base / "munge.log").read_text()

    def impatient(self) -> dict[str, str]:
        """An environment in which Slurm's commands notice at once that their controller is away."""
        # Beside the other, where gres.conf is.
        configuration = self.base / "impatient.conf"
        text = (self.base / "slurm.conf").read_text()
        configuration.write_text(text.replace("MessageTimeout=5", "MessageTimeout=1"))
        return {"SLURM_CONF": str(configuration)}

    def start_daemon(self, name: str) -> None:
        configuration = str(self.base / "slurm.conf")
        if name == "slurmctld":
            self._daemon(name, "slurmctld", "-D", "-f", configuration)
        else:
            self._daemon(name, "slurmd", "-D", "-f", configuration, "-N", name)

    def _daemon(self, name: str, *words: str) -> None:
        said = (self.base / "log" / f"{name}.out").open("ab")
        with said:
            self.daemons[name] = subprocess.Popen(
                [*self.before, *words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd="/",
            )

    def kill_daemon(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        daemon = self.daemons.pop(name)
        daemon.send_signal(number)
        daemon.wait(30)

    def call(self, *words: str) -> str:
        """What a command of Slurm's prints; empty where it fails."""
        done = subprocess.run(
            [*self.before, *words],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=AT_MOST_S,
            check=False,
        )
        return done.stdout if done.returncode == 0 else ""

    def start_python(
        self, *words: str | Path, environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """A Python program as the user of the cluster."""
        process = subprocess.Popen(
            [*self.before, sys.executable, "-P", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.base / "studies",
            env={**self.environment, **(environment or {})},
        )
        self.started.append(process)
        return process

    def logs(self) -> str:
        """The ends of all logs, for a failure's message."""
        return "\n".join(
            f"== {path}\n{path.read_text(errors='replace')[-3000:]}" for path in self.base.glob("log/*")
        )

    def step_daemons(self, node: str) -> list[int]:
        """Pids of slurmstepd for jobs of a node; they call themselves slurmstepd: [JOB.batch]."""
        return [
            process.pid
            for process in processes_naming("slurmstepd")
            if process.line.startswith("slurmstepd") and self._belongs(process.folder, node)
        ]

    def _belongs(self, folder: Path, node: str) -> bool:
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
        own = f"SLURM_CONF={self.base / 'slurm.conf'}".encode()
        return own in variables or node.encode() in b" ".join(variables)

    def stop(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.call("scancel", f"--user={self.user}")
        if self.call("squeue", "-h", "-t", "running,completing"):
            wait_until(lambda: not self.call("squeue", "-h", "-t", "running,completing"), deadline_s=15)
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@contextmanager
def slurm_lab(*, as_root: bool = False) -> Iterator[SlurmLab]:
    # Not tmp_path: the cluster's user must be able to reach it.
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-slurm-"))
    base.chmod(0o755)
    lab = SlurmLab(base, as_root=as_root)
    try:
        lab.configure()
        lab.start()
        yield lab
    finally:
        lab.stop()
        shutil.rmtree(base, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def tally(said: str) -> dict[str, object]:
    """The last line of the driver's words."""
    found: dict[str, object] = json.loads(said.strip().splitlines()[-1])
    return found


def wait_for(path: Path, *, deadline_s: float = AT_MOST_S) -> None:
    assert wait_until(path.exists, deadline_s=deadline_s), f"{path} did not come; {time.ctime()}"
