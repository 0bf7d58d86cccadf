"""Sources of the local engine: declared streams and tables read from files, and the arrival of their rows."""

from headgate.runtime.sources.arrival import Admitted, Arrival, ArrivalState
from headgate.runtime.sources.rejects import RejectPolicy
from headgate.runtime.sources.source import FileSource, open_source

__all__ = ["Admitted", "Arrival", "ArrivalState", "FileSource", "RejectPolicy", "open_source"]
