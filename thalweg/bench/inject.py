"""`thalweg bench inject`: how often a prompt is given earlier facts, and whether these help.

Each project is a store of its own. What people and agents said is written in order of time; before a marked prompt is,
it is searched for and judged as a node does for the hook, and before a session's first turn its brief is read. A prompt
that needs an earlier fact, or would be helped by one, counts where one of the marked events is among what it is given,
or, of `…_with_brief`, what its session was told at its start; one that needs nothing, where it is given anything: a
brief is not a prompt's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from processors.embedding.model import Embedder
from thalweg.bench.inject_marks import HELPS, NEEDS, NONE, MarkedProject, bundled_marks, read_projects, shares
from thalweg.bench.inject_store import session_store
from thalweg.bench.report import Report, Target

NONE_AT_MOST, NEEDS_AT_LEAST = Target(10.0), Target(60.0, at_least=True)
"""For the projects that are reported, not for those on which the floor was chosen."""
WITH_BRIEF = "_with_brief"


@dataclass(frozen=True, slots=True)
class PromptResult:
    """What one prompt was given: whether that counts, also with the brief; how many facts, their tokens."""

    counts: bool
    with_brief: bool
    facts: int
    tokens: int


@dataclass
class ProjectResult:
    """The prompts of a project by their marks, and the tokens of each session's brief."""

    prompts: dict[str, list[PromptResult]]
    briefs: list[int]


def measure_inject(directory: Path, embedder: Embedder, name: str, marks: bytes | None = None) -> Report:
    """Replay the marked sessions that the directory holds. `name`: of the embedder; `marks`: the bundled ones.

    Raises Refused where the directory holds none.
    """
    report = Report("inject", {"directory": directory.name, "embedder": name})
    for project in read_projects(directory, bundled_marks() if marks is None else marks):
        _report(report, project, _replay(project, embedder))
    return report


def _replay(project: MarkedProject, embedder: Embedder) -> ProjectResult:
    """What each marked prompt was given, in order of time."""
    result, told = ProjectResult(defaultdict(list), []), dict[str, set[str]]()
    with session_store(embedder, project.name) as store:
        for turn in project.turns:
            session = str(turn.session)
            if session not in told:
                brief, told[session] = store.brief(turn)
                result.briefs.append(0 if brief is None else brief.tokens)
            mark = project.marks.get(turn.turn_id)
            if mark is not None:
                given = store.facts(turn)
                records = [] if given is None else [note.record_id for note in given.notes]
                counts = bool(records) if mark.kind == NONE else not mark.facts.isdisjoint(records)
                with_brief = counts or not mark.facts.isdisjoint(told[session])
                tokens = 0 if given is None else given.tokens
                result.prompts[mark.kind].append(PromptResult(counts, with_brief, len(records), tokens))
            store.write(turn)
    return result


def _report(report: Report, project: MarkedProject, result: ProjectResult) -> None:
    is_reported = project.part == "report"
    for kind, target in ((NONE, NONE_AT_MOST), (HELPS, None), (NEEDS, None)):
        counts = [each.counts for each in result.prompts[kind]]
        _add_share(report, f"{project.name}_{kind}", counts, target if is_reported else None)
        report.add(f"{project.name}_{kind}_prompts", len(counts), "", bare=True)
    for kind, target in ((HELPS, None), (NEEDS, NEEDS_AT_LEAST)):
        counts = [each.with_brief for each in result.prompts[kind]]
        _add_share(report, f"{project.name}_{kind}{WITH_BRIEF}", counts, target if is_reported else None)
    every = [each for answers in result.prompts.values() for each in answers]
    report.add(f"{project.name}_facts_per_prompt", _mean(each.facts for each in every), "")
    report.add(f"{project.name}_tokens_per_prompt", _mean(each.tokens for each in every), "tokens")
    report.add(f"{project.name}_tokens_per_brief", _mean(iter(result.briefs)), "tokens")


def _add_share(report: Report, name: str, counts: list[bool], target: Target | None) -> None:
    share, low, high = shares(counts)
    report.add(name, share, "%", target if counts else None)
    report.add(f"{name}_low", low, "%", bare=True)
    report.add(f"{name}_high", high, "%", bare=True)


def _mean(values: Iterator[float]) -> float:
    found = list(values)
    return sum(found) / max(len(found), 1)
