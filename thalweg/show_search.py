"""What people see of a search: each hit with the words that were asked for, and what every side said of it."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

from storage.search.terms import document_terms, query_terms
from thalweg.show import SIGNS, console, plain

MAX_SHOWN = 400
_WORD = re.compile(r"\w+")
RAW = {"vector": "cosine", "keyword": "BM25", "graph": "place of its parent", "late": "token cosines", "date": "nearness"}


def highlighted(text: str, query: str) -> Text:
    """The text with every word emphasised that has a search term of the query; cut where it is long."""
    shown = Text(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…")
    asked = set(query_terms(query))
    for word in _WORD.finditer(shown.plain):
        if asked.intersection(document_terms(word.group())):
            shown.stylize("bold yellow", word.start(), word.end())
    return shown


def show_hits(query: str, answer: dict[str, Any]) -> None:
    """Hits, best first, and what was missing."""
    out = console()
    for number, hit in enumerate(answer["hits"], 1):
        _show_hit(out, query, hit, f"[bold]{number}[/bold]  ", "   ")
    _show_end(out, len(answer["hits"]), answer)


def show_sessions(query: str, answer: dict[str, Any]) -> None:
    """Sessions, best first: what is known of each, what its score is the sum of, and its best records."""
    out = console()
    for number, found in enumerate(answer["sessions"], 1):
        where = " · ".join(str(found[name]) for name in ("source", "agent", "project", "started_at") if found[name])
        out.print(
            f"[bold]{number}[/bold]  {found['score']:.3f}  [bold]{plain(found['session_id'])}[/bold]  [dim]{plain(where)}[/dim]",
            soft_wrap=True,
        )
        for about in filter(None, dict.fromkeys((found["goal"], found["summary"]))):
            out.print(Text("   ") + highlighted(about.replace("\n", " ").translate(SIGNS), query), soft_wrap=True)
        out.print(f"   [dim]{plain(summed(found['parts']))}; {found['records']} records compared[/dim]", soft_wrap=True)
        for hit in found["hits"]:
            _show_hit(out, query, hit, "   ", "      ")
    _show_end(out, len(answer["sessions"]), answer)


def _show_hit(out: Console, query: str, hit: dict[str, Any], before: str, indent: str) -> None:
    where = " · ".join(str(hit[name]) for name in ("kind", "toolset", "session_id", "domain", "created_at") if hit[name])
    out.print(f"{before}{hit['score']:.3f}  [dim]{plain(where)}  {plain(hit['record_id'])}[/dim]", soft_wrap=True)
    out.print(Text(indent) + highlighted(hit["text"].replace("\n", " ").translate(SIGNS), query), soft_wrap=True)
    out.print(f"{indent}[dim]{plain(said(hit['sides']))}[/dim]", soft_wrap=True)
    out.print(f"{indent}[dim]{plain(summed(hit['parts']))}[/dim]", soft_wrap=True)


def _show_end(out: Console, count: int, answer: dict[str, Any]) -> None:
    out.print(f"[dim]{count} of {answer['total']} found[/dim]" if count else "Nothing was found.")
    if answer["degraded"]:
        out.print(f"[yellow]{plain(answer['degraded'])}[/yellow]", soft_wrap=True)


def said(sides: dict[str, dict[str, float]]) -> str:
    """`vector #1 (cosine 0.71), keyword #3 (BM25 4.2)`."""
    return ", ".join(f"{side} #{one['rank']} ({RAW.get(side, 'raw')} {one['raw']:.4g})" for side, one in sides.items())


def summed(parts: dict[str, float]) -> str:
    """`late +0.31, vector +0.12, asking −0.02`: what the score is the sum of; what adds nothing is left out."""
    return ", ".join(f"{part} {added:+.3f}".replace("-", "−") for part, added in parts.items() if round(added, 3))


def show_why(answer: dict[str, Any]) -> None:
    """The verdict, the sentences, and what each side says."""
    out = console()
    colour = "green" if answer["verdict"] == "returned" else "yellow"
    out.print(f"{plain(answer['record_id'])}: [{colour}]{answer['verdict']}[/{colour}]", soft_wrap=True)
    for reason in answer["reasons"]:
        out.print(f"  • {plain(reason)}", soft_wrap=True)
    if answer["sides"]:
        out.print(f"  [dim]{plain(said(answer['sides']))}[/dim]", soft_wrap=True)
    if answer["parts"]:
        out.print(f"  [dim]{plain(summed(answer['parts']))}[/dim]", soft_wrap=True)
