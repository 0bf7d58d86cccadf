"""What `Query.check` gives: the verdict, printed as `headgate check` prints it, in a terminal and in a notebook."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from rich.console import Console
from rich.text import Text

from headgate.explain.check_report import CheckReport
from headgate.safety.verdict import Verdict


@dataclass(frozen=True, repr=False)
class CheckResult(Verdict):
    """A verdict that knows how it is shown."""

    show: Callable[[], CheckReport] | None = field(default=None, compare=False)
    """The verdict with graphs and sizes; they are found when they are looked at."""

    @staticmethod
    def of(verdict: Verdict, show: Callable[[], CheckReport]) -> CheckResult:
        """A verdict, to be shown so."""
        return CheckResult(**{each.name: getattr(verdict, each.name) for each in fields(Verdict)}, show=show)

    def to_text(self) -> Text:
        return (CheckReport(self) if self.show is None else self.show()).to_text()

    def __str__(self) -> str:
        return self.to_text().plain.rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self.to_text())


def html(text: Text) -> str:
    """Coloured text as a piece of HTML, as wide as it is."""
    width = max(map(len, text.plain.splitlines()), default=1)
    console = Console(file=io.StringIO(), record=True, width=width, emoji=False, highlight=False)
    console.print(text, end="", soft_wrap=True)
    return console.export_html(
        inline_styles=True, code_format='<pre style="line-height:1.4">{code}</pre>'
    ).rstrip()
