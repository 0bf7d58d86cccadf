"""Which addresses processes listen at, by their entries in /proc."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from pathlib import Path

_LISTENING = "0A"


def beyond_loopback(pids: Iterable[int]) -> set[str]:
    """The addresses that processes listen at and that another machine could reach."""
    return {each for each in addresses(pids) if not _is_loopback(each)}


def addresses(pids: Iterable[int]) -> set[str]:
    """The addresses that processes listen at."""
    sockets = {inode for pid in pids for inode in _sockets(pid)}
    return {address for inode, address in _listeners() if inode in sockets}


def _is_loopback(address: str) -> bool:
    found = ip_address(address)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback


def _sockets(pid: int) -> list[str]:
    found = []
    try:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            target = str(each.readlink())
            if target.startswith("socket:["):
                found.append(target[8:-1])
    except OSError:
        return found
    return found


def _listeners() -> list[tuple[str, str]]:
    """Socket and address of all that listens on this machine."""
    found = []
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        table = Path(f"/proc/net/{name}")
        for line in table.read_text().splitlines()[1:] if table.exists() else []:
            words = line.split()
            if words[3] == _LISTENING:
                # Words of four bytes, each in the order of this machine.
                text = words[1].partition(":")[0]
                packed = b"".join(
                    struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8)
                )
                found.append((words[9], socket.inet_ntop(family, packed)))
    return found
