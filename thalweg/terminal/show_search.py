"""What people see of a search: each hit with the query's words, its rank and score on every side."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

from storage.search.words.analyzer import document_terms, query_terms
from thalweg.terminal.show import SIGNS, console, plain

MAX_SHOWN = 400
LEAD = 60
"""The characters that are shown before the first word of the query."""
_WORD = re.compile(r"\w+")
RAW = {
    "vector": "cosine",
    "keyword": "BM25",
    "graph": "place of its parent",
    "late": "token cosines",
    "date": "nearness",
}


def highlighted(text: str, query: str, passage: dict[str, int] | None = None) -> Text:
    """The text with every word emphasised that has a search term of the query.

    Of a long text, the part of its best passage with most of them.
    """
    start, end = _part(text, query, passage)
    shown = Text(("…" if start else "") + text[start:end] + ("…" if end < len(text) else ""))
    for first, last, _ in _query_words(shown.plain, query):
        shown.stylize("bold yellow", first, last)
    return shown


def _part(text: str, query: str, passage: dict[str, int] | None) -> tuple[int, int]:
    """The characters that are shown: at most MAX_SHOWN, from a little before a word that was asked for."""
    if len(text) <= MAX_SHOWN:
        return 0, len(text)
    begin, end = (passage["start"], passage["end"]) if passage else (0, len(text))
    words = [word for word in _query_words(text, query) if begin <= word[0] < end]
    starts = [begin, *(max(begin, text.rfind(" ", 0, max(first - LEAD, 0)) + 1) for first, _, _ in words)]
    start = max(
        starts,
        key=lambda at: (len({term for first, last, term in words if at <= first and last <= at + MAX_SHOWN}), -at),
    )
    return start, min(start + MAX_SHOWN, len(text))


def _query_words(text: str, query: str) -> list[tuple[int, int, str]]:
    """(start, end, term) of each word that has a search term of the query."""
    terms_of_query = set(query_terms(query))
    words = ((word, terms_of_query.intersection(document_terms(word.group()))) for word in _WORD.finditer(text))
    return [(word.start(), word.end(), min(terms)) for word, terms in words if terms]


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
            f"[bold]{number}[/bold]  {found['score']:.3f}  [bold]{plain(found['session_id'])}[/bold]  "
            f"[dim]{plain(where)}[/dim]",
            soft_wrap=True,
        )
        for about in filter(None, dict.fromkeys((found["goal"], found["summary"]))):
            out.print(Text("   ") + highlighted(about.replace("\n", " ").translate(SIGNS), query), soft_wrap=True)
        out.print(f"   [dim]{plain(sum_of(found['parts']))}; {found['records']} records compared[/dim]", soft_wrap=True)
        for hit in found["hits"]:
            _show_hit(out, query, hit, "   ", "      ")
    _show_end(out, len(answer["sessions"]), answer)


def _show_hit(out: Console, query: str, hit: dict[str, Any], before: str, indent: str) -> None:
    where = " · ".join(
        str(hit[name])
        for name in ("kind", "toolset", "role", "source", "session_id", "domain", "created_at")
        if hit.get(name)
    )
    out.print(f"{before}{hit['score']:.3f}  [dim]{plain(where)}  {plain(hit['record_id'])}[/dim]", soft_wrap=True)
    passage = hit["passage"]
    out.print(
        Text(indent) + highlighted(hit["text"].replace("\n", " ").translate(SIGNS), query, passage), soft_wrap=True
    )
    if passage:
        best = f"best passage: characters {passage['start']} to {passage['end']} of {len(hit['text'])}"
        out.print(f"{indent}[dim]{best}[/dim]", soft_wrap=True)
    if also := ", ".join(f"{other['kind']} {other['id']}" for other in hit.get("also", ())):
        out.print(f"{indent}[dim]stated {hit.get('times', 1)}×; also {plain(also)}[/dim]", soft_wrap=True)
    for field, words in (("earlier", "changes"), ("disputed_by", "disputed by")):
        if others := ", ".join(f"{other['kind']} {other['id']}" for other in hit.get(field, ())):
            out.print(f"{indent}[dim]{words} {plain(others)}[/dim]", soft_wrap=True)
    out.print(f"{indent}[dim]{plain(ranks_of(hit['sides']))}[/dim]", soft_wrap=True)
    out.print(f"{indent}[dim]{plain(sum_of(hit['parts']))}[/dim]", soft_wrap=True)


def _show_end(out: Console, count: int, answer: dict[str, Any]) -> None:
    out.print(f"[dim]{count} of {answer['total']} found[/dim]" if count else "Nothing was found.")
    if answer["degraded"]:
        out.print(f"[yellow]{plain(answer['degraded'])}[/yellow]", soft_wrap=True)


def ranks_of(sides: dict[str, dict[str, float]]) -> str:
    """`vector #1 (cosine 0.71), keyword #3 (BM25 4.2)`."""
    return ", ".join(f"{side} #{one['rank']} ({RAW.get(side, 'raw')} {one['raw']:.4g})" for side, one in sides.items())


def sum_of(parts: dict[str, float]) -> str:
    """`late +0.31, vector +0.12, asking −0.02`: what the score is the sum of. What adds nothing is left out."""
    return ", ".join(f"{part} {added:+.3f}".replace("-", "−") for part, added in parts.items() if round(added, 3))


def show_why(answer: dict[str, Any]) -> None:
    """The verdict, the sentences, and what each side says."""
    out = console()
    colour = "green" if answer["verdict"] == "returned" else "yellow"
    out.print(f"{plain(answer['record_id'])}: [{colour}]{answer['verdict']}[/{colour}]", soft_wrap=True)
    for reason in answer["reasons"]:
        out.print(f"  • {plain(reason)}", soft_wrap=True)
    if answer["sides"]:
        out.print(f"  [dim]{plain(ranks_of(answer['sides']))}[/dim]", soft_wrap=True)
    if answer["parts"]:
        out.print(f"  [dim]{plain(sum_of(answer['parts']))}[/dim]", soft_wrap=True)
    for given in answer["injected"]:
        score = "" if given["score"] is None else f", confidence {given['score']:.2f}"
        where = f"given to {given['session_id']} at {given['hook']}, {given['injected_at']}{score}"
        out.print(f"  [dim]{plain(where)}[/dim]", soft_wrap=True)
