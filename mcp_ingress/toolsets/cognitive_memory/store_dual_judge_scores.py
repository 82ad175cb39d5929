"""store_dual_judge_scores: two judges score documents for a query of the ground truth. Their agreement is kept."""

from __future__ import annotations

import functools
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from mcp_ingress.toolsets.cognitive_memory.judgement import judged_by, judges_of
from processors.cognitive.rules.judging import Document
from streams.errors import Refused


async def score(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask the judges at once, publish their scores, and answer the agreement that the reducer finds."""
    answers.checked_texts(arguments, "query")
    documents = _documents(arguments["docs"])
    await call.fresh()
    query, query_id = arguments["query"], arguments["query_id"]
    if not await call.read(functools.partial(_exists, namespace=call.namespace, query_id=query_id)):
        raise Refused(f"query_id {query_id} does not exist in ground_truth")
    one, other = judges_of(call)
    mode, first, second = await judged_by(call, query, documents)
    spent = first.spent + second.spent
    scored = [
        {"id": document.id, "judge1": a, "judge2": b}
        for document, a, b in zip(documents, first.scores, second.scores, strict=True)
    ]
    models = {"judge1_model": one.model, "judge2_model": other.model}
    costs = {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens, "cost_usd": spent.cost_usd}
    found = {"documents": scored, "mode": mode, **models, **costs}
    request = writes.request(call, "cm.judge.scored", {"query_id": query_id, "query": query})
    published, result = await answers.write(call, writes.with_findings(request, found))
    return answers.written(published, result or {"query_id": query_id}, pending=result is None)


def _documents(given: list[dict[str, Any]]) -> list[Document]:
    ids = [document["id"] for document in given]
    twice = sorted({number for number in ids if ids.count(number) > 1})
    if twice:
        raise Refused(f"The argument `docs` has the id {twice[0]} twice; each document is judged once.")
    for document in given:
        if not document["content"].strip():
            raise Refused(f"The document {document['id']} in `docs` is blank; it needs some text.")
    return [Document(document["id"], document["content"]) for document in given]


def _exists(cursor: duckdb.DuckDBPyConnection, namespace: str, query_id: int) -> bool:
    return bool(
        cursor.execute("SELECT 1 FROM ground_truth WHERE namespace = ? AND id = ?", [namespace, query_id]).fetchall()
    )


_DOCUMENT = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "description": "Document identifier"},
        "content": {"type": "string", "minLength": 1, "description": "Document content to evaluate for relevance"},
    },
    "required": ["id", "content"],
}
_LABELS = {"type": ["array", "null"], "items": {"type": "boolean"}}

TOOL = Tool(
    name="store_dual_judge_scores",
    toolset="cognitive_memory",
    title="Judge documents twice",
    description="Store dual judge evaluation scores using GPT-4o and Haiku for IRR validation. "
    "Evaluates documents with two independent judges and calculates Cohen's Kappa "
    "for methodologically valid ground truth creation. "
    "Here two offline judges run, one by words and one by meaning, unless the node's settings "
    "name models of a provider.",
    kind="write",
    handler=score,
    timeout_s=600.0,
    open_world=True,
    input_schema={
        "type": "object",
        "properties": {
            "query_id": {
                "type": "integer",
                "minimum": 1,
                "description": "Ground truth query ID (must exist in ground_truth table)",
            },
            "query": {"type": "string", "minLength": 1, "description": "User query string for relevance evaluation"},
            "docs": {
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": _DOCUMENT,
                "description": "Array of documents to evaluate with both judges",
            },
        },
        "required": ["query_id", "query", "docs"],
    },
    output_schema=answers.output_schema(
        {
            "query_id": answers.COUNT,
            "judge1_score": answers.NUMBER,
            "judge2_score": answers.NUMBER,
            "kappa": answers.NUMBER,
            "agreement": answers.TEXT,
            "evaluated_documents": answers.COUNT,
            "judge1_scores": answers.NUMBERS,
            "judge2_scores": answers.NUMBERS,
            "judge1_labels": _LABELS,
            "judge2_labels": _LABELS,
            "judge1_model": answers.TEXT,
            "judge2_model": answers.TEXT,
            "kappa_degenerate": answers.FLAG,
            "mode": {"enum": ["dual", "single", "spot"]},
            "failed_documents": {"type": ["array", "null"], "items": {"type": "integer"}},
        }
    ),
)
