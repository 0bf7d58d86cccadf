"""Nodes: what stands for a machine of a cluster, namespaces whose files and processes are their own.

In a node every file system is read-only but `/tmp`, `/var/tmp` and `/dev/shm`, which are empty at first and the
node's own. So a process that takes another node's files for its own finds none, and one that writes elsewhere fails.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OWN = ("/tmp", "/var/tmp", "/dev/shm")
_ISOLATED = ("--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc")
_ASIDE = "/var/tmp/.kept"
_NO_FILES = ("proc", "sysfs", "devpts", "devtmpfs", "mqueue", "cgroup", "cgroup2", "securityfs", "debugfs")


def why_no_nodes() -> str | None:
    """What is missing for nodes on this machine, or None."""
    for program in ("unshare", "nsenter", "mount"):
        if shutil.which(program) is None:
            return f"{program} is not installed: it is part of util-linux"
    tried = subprocess.run(
        ["unshare", *_as_root(), *_ISOLATED, "mount", "-t", "tmpfs", "tmpfs", "/tmp"],
        check=False,
        capture_output=True,
        text=True,
    )
    return f"this machine allows no namespaces: {tried.stderr.strip()}" if tried.returncode else None


@dataclass
class Node:
    """A node of the cluster with an address of its own on loopback; it lives until it is killed."""

    name: str
    address: str
    shown: Sequence[Path] = ()
    """What processes of the node need to see of this machine, wherever it is."""
    _holder: subprocess.Popen[str] = field(init=False, repr=False)
    _first: int = field(init=False, repr=False)
    _started: list[subprocess.Popen[bytes]] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        # The first process of the node does nothing. When it ends, the others are killed.
        self._holder = subprocess.Popen(
            ["unshare", *_as_root(), *_ISOLATED, "sh", "-ec", self._script()],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n", f"node {self.name} does not start"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self._first = int(children.read_text())

    def path(self, place: str) -> Path:
        """A place in the node's file system for those outside."""
        return Path(f"/proc/{self._first}/root") / place.lstrip("/")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, log: str = "/tmp/log"
    ) -> subprocess.Popen[bytes]:
        """Starts a program in the node; what it prints goes to a file of the node."""
        with self.path(log).open("ab") as out:
            started = subprocess.Popen(
                self._entering(command),
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self._started.append(started)
        return started

    def run(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, *, timeout: float = 1_800
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program in the node to its end."""
        return subprocess.run(
            self._entering(command),
            check=False,
            capture_output=True,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
        )

    def processes(self) -> list[int]:
        """All processes of the node that run, but its first."""
        mine = _namespace(self._first)
        assert mine is not None, f"node {self.name} is gone"
        return [
            each
            for each in _all_processes()
            if each != self._first and _namespace(each) == mine and not _has_ended(each)
        ]

    def crash(self) -> int:
        """Kills all processes of the node at once, as a power cut does; its files stay. How many there were."""
        killed: set[int] = set()
        # What is being started while others are killed is found the next time.
        while found := self.processes():
            for each in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            killed.update(found)
            for child in self._started:
                child.wait(30)
        return len(killed)

    def close(self) -> None:
        """Ends the node and its file systems."""
        self.crash()
        self._holder.communicate()

    def _entering(self, command: Sequence[str]) -> list[str]:
        user = ["--user", "--preserve-credentials"] if os.geteuid() else []
        # Started in the node's own place: relative paths of this machine mean nothing there.
        script = f"cd /tmp && exec {shlex.join(command)}"
        return ["nsenter", "--target", str(self._first), *user, "--mount", "--pid", "sh", "-c", script]

    def _script(self) -> str:
        """The commands that make the namespace what it is."""
        hidden = [each for each in self.shown if any(each.is_relative_to(own) for own in OWN)]
        lines = [f"mount -o remount,bind,ro {shlex.quote(place)}" for place in _writable_mounts()]
        lines += ["mount -t tmpfs tmpfs /var/tmp"] if Path("/var/tmp").is_dir() else []
        for number, each in enumerate(hidden):
            aside = f"{_ASIDE}/{number}"
            lines += [f"mkdir -p {aside}", f"mount --bind {shlex.quote(str(each))} {aside}"]
        lines += [f"mount -t tmpfs tmpfs {own}" for own in OWN if own != "/var/tmp" and Path(own).is_dir()]
        for number, each in enumerate(hidden):
            aside, place = f"{_ASIDE}/{number}", shlex.quote(str(each))
            lines += [f"mkdir -p {place}", f"mount --bind {aside} {place}"]
            lines += [f"mount -o remount,bind,ro {place}", f"umount {aside}"]
        # It ends with the tests, however they end: then nothing holds its standard input any more.
        return "\n".join([*lines, "echo ready", "exec cat >/dev/null"])


def python_places() -> list[Path]:
    """The folders that a Python with this one's packages is made of, and the project's sources."""
    here = Path(__file__).resolve().parents[2]
    return [here, *dict.fromkeys(Path(each).resolve() for each in (sys.prefix, sys.base_prefix))]


def _as_root() -> list[str]:
    return ["--map-root-user"] if os.geteuid() else []


def _writable_mounts() -> Iterator[str]:
    """Where file systems are mounted that can be written to."""
    found: dict[str, bool] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        place = before.split()[4].encode().decode("unicode_escape")
        options, kind = before.split()[5].split(","), after.split()[0]
        if kind not in _NO_FILES and not place.startswith(("/proc", "/sys")) and place not in OWN:
            found[place] = "rw" in options
    yield from (place for place, writable in found.items() if writable)


def _all_processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _has_ended(process: int) -> bool:
    """Whether nothing is left of a process but its number; the first process of a node waits for no other."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _namespace(process: int) -> int | None:
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return None
