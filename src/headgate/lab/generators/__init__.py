"""Generated streams for experiments, benchmarks and demonstrations, and a reader for Zeek's logs."""

from headgate.lab.generators.auction import Auction
from headgate.lab.generators.backbone import Backbone
from headgate.lab.generators.dataset import Dataset, GeneratedStream
from headgate.lab.generators.kmon import Arrival, KMon, Varying
from headgate.lab.generators.linear_road import LinearRoad
from headgate.lab.generators.network import Network
from headgate.lab.generators.synthetic import TABLE_5_3, TABLE_5_5, TABLE_5_6, StreamShape, Synthetic
from headgate.lab.generators.triangle import Triangle
from headgate.lab.generators.zeek import read_zeek

__all__ = [
    "TABLE_5_3",
    "TABLE_5_5",
    "TABLE_5_6",
    "Arrival",
    "Auction",
    "Backbone",
    "Dataset",
    "GeneratedStream",
    "KMon",
    "LinearRoad",
    "Network",
    "StreamShape",
    "Synthetic",
    "Triangle",
    "Varying",
    "read_zeek",
]
