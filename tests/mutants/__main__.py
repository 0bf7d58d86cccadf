"""Changes the code on purpose, one small change at a time, and says which changes no test notices.

    python -m tests.mutants --sample 100 --seed 1 --only src/headgate/kernels --jobs 2 --time 60

Each change is made in a process that has collected the tests, or while its module is imported; no file is touched.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

import yaml
from tests.mutants.covering import gather
from tests.mutants.operators import Mutant, mutants
from tests.mutants.process import ROOT
from tests.mutants.trial import Outcome, try_all

CODE = (
    "src/headgate/kernels",
    "src/headgate/safety",
    "src/headgate/runtime/shard.py",
    "src/headgate/runtime/local/engine.py",
)
TESTS = (
    *("tests/kernels", "tests/expressions", "tests/safety", "tests/differential", "tests/runtime"),
    *(f"tests/spark/test_{name}.py" for name in ("changes", "partition", "shards", "stages")),
)
EQUIVALENT = Path(__file__).parent / "equivalent.yaml"
THRESHOLD = 0.95
"""The share of changes that tests have to notice, of those that change anything."""


def _files(places: list[str], pattern: str) -> list[str]:
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += [path] if path.is_file() else sorted(path.rglob(pattern))
    return [str(path.relative_to(ROOT)) for path in found]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _survivors(output: str) -> set[str]:
    """The changes that a run said nobody noticed."""
    marks = (Outcome.SURVIVED.value, Outcome.UNCOVERED.value)
    lines = (line.partition("] ")[2].partition(" ") for line in output.splitlines())
    return {change.strip() for outcome, _, change in lines if outcome in marks}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, help="try so many changes, chosen at random; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="which changes the sample has")
    parser.add_argument(
        "--only", action="append", help="a file or folder of code, or FILE:LINE; may be given again"
    )
    parser.add_argument(
        "--again",
        type=Path,
        help="only the changes that survived an earlier run, of which this is the output",
    )
    parser.add_argument("--tests", action="append", help="a file or folder of tests; may be given again")
    parser.add_argument("--jobs", type=int, default=1, help="changes tried at once")
    parser.add_argument("--time", type=float, default=120, help="seconds for the tests of one change")
    return parser.parse_args()


def main() -> int:
    """Tries the changes, lists the survivors, and gives the exit code."""
    options = _options()
    equivalent: dict[str, str] = yaml.safe_load(EQUIVALENT.read_text()) or {}
    places = dict.fromkeys(place.partition(":")[0] for place in options.only or CODE)
    lines = {place for place in options.only or () if ":" in place}
    every = [
        each
        for path in _files(list(places), "*.py")
        for each in mutants(path, (ROOT / path).read_bytes())
        if not lines or f"{path}:{each.line}" in lines
    ]
    if options.again:
        survived = _survivors(options.again.read_text())
        every = [each for each in every if str(each) in survived]
    unknown = sorted(equivalent.keys() - {each.key for each in every})
    if unknown and not options.only and not options.again:
        raise SystemExit("\n  ".join(["equivalent.yaml lists changes that are not made any more:", *unknown]))
    changing = [each for each in every if each.key not in equivalent]
    if options.sample is not None and options.sample < len(changing):
        # In no order of places: a run that is interrupted has tried a sample too.
        changing = Random(options.seed).sample(changing, options.sample)
    _say(f"{len(changing)} of {len(every)} changes to try")
    files = _files(options.tests or list(TESTS), "test_*.py")
    covering = gather(files, CODE, options.jobs, _say)
    outcomes: dict[Mutant, Outcome] = {}
    for mutant, outcome in try_all(changing, covering, files, options.jobs, options.time):
        outcomes[mutant] = outcome
        _say(f"[{len(outcomes)}/{len(changing)}] {outcome.value:9} {mutant}")
    counts = {kind: sum(each is kind for each in outcomes.values()) for kind in Outcome}
    _say("\nsurvivors:" if counts[Outcome.SURVIVED] + counts[Outcome.UNCOVERED] else "\nno survivors")
    for mutant in sorted(outcomes, key=lambda each: (each.path, each.start)):
        if outcomes[mutant] in (Outcome.SURVIVED, Outcome.UNCOVERED):
            _say(f"  {mutant}" + ("  (no test runs it)" if outcomes[mutant] is Outcome.UNCOVERED else ""))
    noticed = counts[Outcome.NOTICED] + counts[Outcome.TIMED_OUT]
    share = noticed / len(outcomes) if outcomes else 1.0
    _say(
        f"\n{len(outcomes)} changes: {counts[Outcome.NOTICED]} noticed, {counts[Outcome.TIMED_OUT]} timed out, "
        f"{counts[Outcome.SURVIVED]} survived, {counts[Outcome.UNCOVERED]} run by no test; {share:.1%} noticed"
    )
    return 0 if share >= THRESHOLD else 1


if __name__ == "__main__":
    sys.exit(main())
