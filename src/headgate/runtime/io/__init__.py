"""Where rows come from and go to: one file for each format, source and sink beside each other."""

from headgate.runtime.io.arrival import Admitted, Arrival, ArrivalState
from headgate.runtime.io.rejects import RejectPolicy
from headgate.runtime.io.source import FileSource, open_source

__all__ = ["Admitted", "Arrival", "ArrivalState", "FileSource", "RejectPolicy", "open_source"]
