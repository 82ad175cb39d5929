"""What the judges are terms with: how many are terms, and how rare the query's words are."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence

import duckdb

from mcp_ingress.call import Call
from processors.cognitive.config import CognitiveConfig
from processors.cognitive.rules.judging import Corpus, Document, Judge, Judgement, words
from processors.cognitive.rules.staging import DUAL, SINGLE, WINDOW, Run, next_mode
from streams.errors import Unavailable

MAX_COUNTED = 20_000


async def judged_by(call: Call, query: str, documents: Sequence[Document]) -> tuple[str, Judgement, Judgement]:
    """The mode, and what each judge says. The second says nothing of any document when the first is terms alone."""
    one, other = judges_of(call)
    mode = (
        next_mode(await call.read(functools.partial(_runs, namespace=call.namespace)), call.request_id)
        if _is_staged(call)
        else DUAL
    )
    corpus = await call.read(functools.partial(_corpus, namespace=call.namespace, query=query))
    if mode == SINGLE:
        return mode, await one.judge(query, documents, corpus), Judgement([None] * len(documents))
    first, second = await asyncio.gather(one.judge(query, documents, corpus), other.judge(query, documents, corpus))
    return mode, first, second


def judges_of(call: Call) -> tuple[Judge, Judge]:
    """The node's two judges. Raises Unavailable when it has none."""
    judges = call.part(CognitiveConfig).judges
    if judges is None:
        raise Unavailable("The node has no judges; the settings `judge1` and `judge2` name them.")
    return judges


def _is_staged(call: Call) -> bool:
    return call.part(CognitiveConfig).is_staged


def _runs(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[Run]:
    """The last runs, newest first."""
    rows = cursor.execute(
        "SELECT mode, CASE WHEN NOT kappa_degenerate THEN kappa END FROM judge_runs WHERE namespace = ? "
        'ORDER BY judged_at DESC, "offset" DESC LIMIT ?',
        [namespace, WINDOW],
    ).fetchall()
    return [Run(mode or DUAL, kappa) for mode, kappa in rows]


def _corpus(cursor: duckdb.DuckDBPyConnection, namespace: str, query: str) -> Corpus:
    """How many insights hold each of the query's words, counted in the MAX_COUNTED newest that may."""
    [(total,)] = cursor.execute("SELECT count(*) FROM l2_insights WHERE namespace = ?", [namespace]).fetchall()
    terms = list(dict.fromkeys(words(query)))[:64]
    if not terms or not total:
        return Corpus(total, {})
    likely = " OR ".join(["contains(lower(content), ?)"] * len(terms))
    rows = cursor.execute(
        f"SELECT content FROM l2_insights WHERE namespace = ? AND ({likely}) "
        f"ORDER BY created_at DESC LIMIT {MAX_COUNTED}",
        [namespace, *terms],
    ).fetchall()
    contents = [set(words(content)) for (content,) in rows]
    return Corpus(total, {word: sum(word in content for content in contents) for word in terms})
