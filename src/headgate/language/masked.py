"""Statements for others to read: their options without passwords."""

from __future__ import annotations

import re

from sqlglot import exp

from headgate.language import nodes

MASK = "…"
_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|jaas|(access|api|private).?key", re.IGNORECASE
)
_VALUE = re.compile(r"://[^/]*@|pass(word|wd)\s*=", re.IGNORECASE)


def masked(tree: exp.Expr) -> exp.Expr:
    """A copy of a statement in which `…` stands for each option that is a password, or an address with one."""
    copy = tree.copy()
    for option in copy.find_all(nodes.Option):
        value = option.args["value"]
        if _NAME.search(str(option.args["this"])) or _VALUE.search(value.name):
            option.set("value", exp.Literal.string(MASK))
    return copy
