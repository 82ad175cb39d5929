"""The evidence on candidates, from words, vectors, tokens, neighbours, relations and dates."""

from __future__ import annotations

import numpy as np

from storage.search.question import asks_about_user
from storage.search.ranking.background import background, sample_of
from storage.search.ranking.candidates import Candidates
from storage.search.ranking.context import SearchContext
from storage.search.ranking.dates import nearness
from storage.search.ranking.weights import Evidence
from storage.search.records.matches import Matches, scores_of
from storage.search.vectors.space import coverage


def collect_evidence(context: SearchContext, candidates: Candidates, keywords: Matches) -> Evidence:
    """Collect what is known of each candidate, by its number among their labels.

    `keywords`: all matches of the keyword side, also those that are too weak to be candidates.
    """
    query, space, labels = context.query, context.space, candidates.labels
    evidence = Evidence(
        len(labels),
        keyword=scores_of(labels, keywords, 0.0) / (context.words.ceiling(query.matter, query.filter.namespace) or 1.0),
        neighbours=context.records.timelines.among(labels),
        asking=context.records.questions.shares(labels),
        parents=candidates.parents,
        together=context.records.follow_relations(context.cursor).recalled_together(labels),
    )
    if evidence.together is not None:
        evidence.speakers = context.records.speakers.among(labels)
        evidence.named = context.records.speakers.named(query.text)
    if asks_about_user(query.text):
        evidence.is_by_user = context.records.user_records.among(labels)
    tokens = None
    if query.vector is not None:
        evidence.vector = space.document_similarities(query.vector, labels, roughly=True)
        evidence.background = background(_sampled(context, query.vector))
        around = context.records.surroundings(context.cursor, query.filter.namespace, context.space_name)
        if around is not None:
            evidence.surroundings = around.similarities(query.vector, labels)
            sampled = around.similarities(query.vector, sample_of(context.allowed.labels))
            evidence.among_surroundings = background(sampled)
        tokens = None if query.tokens is None else space.match_tokens(query.tokens, query.vector, labels)
    if tokens is not None and query.tokens is not None:
        evidence.rows, evidence.is_read, evidence.weights = tokens.rows, tokens.is_read, tokens.weights
        evidence.lengths, evidence.passages = tokens.lengths, tokens.passages
        fits = zip(labels[tokens.is_read].tolist(), tokens.fits[tokens.is_read].tolist(), strict=True)
        evidence.fits = dict(fits)
        covered = coverage(query.tokens, tokens)[tokens.is_read]
        evidence.coverage = dict(zip(labels[tokens.is_read].tolist(), covered.tolist(), strict=True))
    if candidates.dates:
        written = context.records.documents.dates(context.cursor, labels.tolist())
        days = [written[label][0].date() if label in written else None for label in labels.tolist()]
        evidence.dates = np.array([0.0 if day is None else nearness(candidates.dates, day) for day in days])
    return evidence


def _sampled(context: SearchContext, vector: np.ndarray) -> np.ndarray:
    """(n,) cosines of a vector to a sample of what the filter leaves.

    The sample's vectors are in memory until the next commit.
    """

    def read(last: object, rows: object) -> np.ndarray | None:
        found = context.space.vectors(sample_of(context.allowed.labels))
        return np.stack(list(found.values())) if found else None

    sample = context.records.cached(context.cursor, ("sample", context.space_name, context.query.filter), read)
    return np.empty(0) if sample is None else sample @ vector
