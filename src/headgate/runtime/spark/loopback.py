"""Loopback: a Spark whose processes all run on this machine is reached from this machine alone.

Spark's driver, its blocks and, with `local-cluster[…]`, its master, workers and executors listen at the address of
the machine's name unless they are told another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

ADDRESS = "127.0.0.1"
_HERE = re.compile(r"local(-cluster)?(\[.*\])?")
_DRIVER = ("spark.driver.host", "spark.driver.bindAddress")
_EVERY_PROCESS = "SPARK_LOCAL_IP"


def stays_here(master: str, given: Mapping[str, str]) -> bool:
    """Whether a master has no process elsewhere, and the user names no address to listen at."""
    named = any(each in given for each in _DRIVER) or _EVERY_PROCESS in os.environ
    return _HERE.fullmatch(master) is not None and not named


@contextmanager
def loopback(master: str, given: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The settings with which Spark, if it is started within and stays here, listens on loopback only.

    Settings are for the driver; pages of the user interface and the processes of a local cluster ask the environment.
    """
    if not stays_here(master, given):
        yield {}
        return
    os.environ[_EVERY_PROCESS] = ADDRESS
    try:
        yield dict.fromkeys(_DRIVER, ADDRESS)
    finally:
        del os.environ[_EVERY_PROCESS]
