"""Triangle: streams S1(a, b), S2(b, c), S3(c, a) that close the values they leave behind (Punctuation document).

Values rise together: of each column `open` values are in use at a time, the least of which is closed by a last row.

```
S1.b   3 1 4 2 | 1!   2 5 3 4 | 2!   4 3 6 5 | 3!        ! closes both columns of its row, 4 values in use
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import ROWS_PER_BLOCK, blocks, generator
from headgate.model import types
from headgate.model.time import MILLISECOND

COLUMNS: Mapping[str, tuple[str, str]] = {"S1": ("a", "b"), "S2": ("b", "c"), "S3": ("c", "a")}


@dataclass(frozen=True)
class Triangle(Dataset):
    """Streams S1, S2 and S3 of `rows` rows each, in turn, a row every millisecond.

    Before the row that closes a value come `uses` rows, so a value has about that many rows on each stream.
    """

    rows: int = 30_000
    open: int = 100
    uses: int = 10
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise ValueError("rows is not negative")
        if self.open < 1 or self.uses < 1:
            raise ValueError("a value is in use, for at least a row")

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {
            name: GeneratedStream(name, _schema(name), partial(self._tables, place), lambda: self.rows)
            for place, name in enumerate(COLUMNS)
        }

    def _tables(self, place: int) -> Iterator[pa.Table]:
        name = f"S{place + 1}"
        for block, first, count in blocks(self.rows, ROWS_PER_BLOCK):
            rng = generator(self.seed, f"triangle.{name}", block)
            number = np.arange(first, first + count)
            least, turn = np.divmod(number, self.uses + 1)
            last = turn == self.uses
            values = least + np.where(last, 0, rng.integers(self.open, size=(2, count)))
            ts = self.start + (len(COLUMNS) * number + place) * MILLISECOND
            yield pa.table([ts.view("datetime64[us]"), *values, last], schema=_schema(name))


def _schema(name: str) -> pa.Schema:
    one, other = COLUMNS[name]
    return pa.schema(
        [("ts", types.TIMESTAMP), (one, types.BIGINT), (other, types.BIGINT), ("last", types.BOOLEAN)]
    )
