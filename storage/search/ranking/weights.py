"""The default ranking: a sum of late interaction, BM25, distinctive vectors and named dates.

    score = (late + 0.3 · words · keyword + 0.045 · trust · brevity · vector + 0.2 · date) · (1 - 0.15 · asking) / 2,
    then half as much again where the speaker is asked for, then lifted to half of a related record's score,
    then more for what was often recalled and who said it, where the query finds what was recalled together

late     Σ_j w_j · max(sim_j, 0.85 · one turn away, 0.75 · two turns away); w: rarity of the query's tokens, Σ w = 1.
         A long text matches by its best passage, and that counts 1 - 0.05 · ln(passages): of many one is near by chance
keyword  BM25 as a share of the most that the query can score, and 0.6 or 0.45 of the best neighbour's, one or two
         turns away; a long text says enough itself and takes nothing from its neighbours
vector   by how many standard deviations the cosine exceeds those of the filter's other texts, 0 to 6; the cosine of a
         long text is half its best passage's, a quarter each of its whole vector's and its beginning's
brevity  √min(1, content tokens / 45) for what has neighbours: the vector of a few words of a conversation is near to
         everything that names the same person; a note that stands alone says what it says
words    whether the query's words are there at all: 0 where no record alone matches its tokens better than 0.35,
         1 from 0.5 on; where they are not, only the vector can tell
trust    how many times its share the vector counts: 1 where the words are there, 2 where they are nowhere; 2 and 5
         where texts lie apart. A query whose mean cosine to all texts is 0.2 is near to all of them, by the persons and
         the matter that they share: what it is near to above that says little. At 0.1 the texts are of many matters,
         and the nearest is seldom so by chance
date     how near a record's day is to a date that the query names (`dates`)
asking   the share of a record that asks instead of telling (`asking`); of what a user said half of it, where the
         question asks for that: a request tells what it is about
surroundings  what dreams learned of a record together with what was said just before and after it: none before the
         first dream. 0.035 · brevity · by how many more standard deviations the cosine of the surroundings stands out
         than that of the record itself, so that nothing counts twice and what stands alone loses nothing
speaker  what a user said, where a question asks for what the user said or did (`storage/search/question`)
recalled what dreams learned from searches: none before the first dream. A record gains 0.03 of the best score by how
         high it stood in another search that was made again and again, as much by how high beside the best records
         of this one, and up to 0.15 of its own by its speaker (`voices`): what is asked again wants more than one
         answer, and one person gives most of them. All only as far as the five best were recalled together, so that
         other questions keep their order
imputed  what a record whose vectors are not there yet gets beside its keywords and its date, so that it stands behind
         as many embedded records as by these alone. Where no record is embedded, words and dates alone rank

Absolute numbers, not ranks: a side that has found nothing adds nothing. Only the vector's are relative to the corpus,
since the cosines of one lie close together, and those of another far apart. docs/adr/0008 has what each part brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from storage.search.ranking.ranks import rank_strength
from storage.search.records.relations import Together
from storage.search.records.speakers import NOBODY
from storage.search.records.timeline import Neighbours

SHARES: Mapping[str, float] = {"late": 1.0, "keyword": 0.3, "vector": 0.045, "date": 0.2}
WHOLE = 2.0
TOKEN_DECAY = (1.0, 0.85, 0.75)
KEYWORD_LENT = (0.0, 0.6, 0.45)
FULL_LENGTH = 45
WORDS_FROM, WORDS_FULL = 0.35, 0.5
CROWDED, APART = 0.2, 0.1
"""The mean cosine from which on texts are all alike to a query, and up to which they lie apart."""
TRUST_CROWDED, TRUST_APART = (1.0, 2.0), (2.0, 5.0)
"""The factors of the vector's share where the query's words are in a record, and where they are in none."""
MOST_DEVIATIONS = 6.0
ASKING_SHARE, ASKING_OF_USER = 0.15, 0.5
SPEAKER_SHARE = 0.5
PASSAGES_SHARE = 0.05
"""What each e-fold of passages takes off a long text's late interaction."""
GRAPH_SHARE = 0.5
SURROUNDINGS_SHARE = 0.035
RECALLED_SHARE = 0.03
VOICE_SHARE = 0.15
ANCHORS = 5
"""The best records, by which it is told whether the query finds what was recalled together."""
FIRST = 10
"""The results whose speakers tell whose words are wanted."""
COVERED_FROM = 0.3
"""Up to this share of what the best records might have in common, they met by chance."""

Parts = Mapping[str, np.ndarray]
"""side -> (n,) what it adds to each candidate's score, NaN where it says nothing."""
NO_NEIGHBOURS = Neighbours(*(np.empty(0, np.int64) for _ in range(3)))


def _nothing() -> np.ndarray:
    return np.empty(0)


@dataclass
class Evidence:
    """The evidence on n candidates, by number: arrays are (n,) unless they say otherwise.

    What is left out counts as not found.
    """

    count: int
    rows: np.ndarray = field(default_factory=_nothing)
    """(n, tokens): the best cosine to each token of the query."""
    is_read: np.ndarray = field(default_factory=_nothing)
    """Whether the index has the token vectors of a record; `rows` is meaningless where it has not."""
    weights: np.ndarray = field(default_factory=_nothing)
    """(tokens,) what each counts."""
    keyword: np.ndarray = field(default_factory=_nothing)
    """Shares of the most that the query can score, 0 where it has no word."""
    vector: np.ndarray = field(default_factory=_nothing)
    """Cosines, NaN where there is no vector."""
    background: tuple[float, float] = (CROWDED, 1.0)
    """Mean and standard deviation of the cosines of all that might have been found."""
    surroundings: np.ndarray = field(default_factory=_nothing)
    """Cosines of what stands around a record, together with it; NaN where no dream has made that vector."""
    among_surroundings: tuple[float, float] = (CROWDED, 1.0)
    """Mean and standard deviation of those cosines of all that might have been found."""
    lengths: np.ndarray = field(default_factory=_nothing)
    """Content tokens, 0 where that is not known."""
    neighbours: Neighbours = NO_NEIGHBOURS
    """What stands next to whom, both by number."""
    dates: np.ndarray = field(default_factory=_nothing)
    """How near to a date that is named, 0 for nowhere near."""
    asking: np.ndarray = field(default_factory=_nothing)
    passages: np.ndarray = field(default_factory=_nothing)
    """How many passages it has, 1 of a short text."""
    is_by_user: np.ndarray = field(default_factory=_nothing)
    """Whether a user said it, where the question asks for what the user said."""
    parents: np.ndarray = field(default_factory=_nothing)
    """The number of the best of the records that this one is related to, -1 for none."""
    speakers: np.ndarray = field(default_factory=_nothing)
    """The number of the speaker of each, NOBODY for none."""
    named: Sequence[int] = ()
    """The speakers that the query names."""
    together: Together | None = None
    """What searches returned together, both by number."""
    fits: dict[int, int] = field(default_factory=dict)
    """Document -> the label of its passage that matches the tokens best."""
    coverage: dict[int, float] = field(default_factory=dict)
    """Document -> how much of the query it says, by its tokens."""

    def __post_init__(self) -> None:
        nowhere = {
            "is_read": False,
            "keyword": 0.0,
            "vector": np.nan,
            "surroundings": np.nan,
            "lengths": 0,
            "dates": 0.0,
            "asking": 0.0,
            "passages": 1,
            "is_by_user": False,
            "parents": -1,
            "speakers": NOBODY,
        }
        for name, value in nowhere.items():
            if not len(getattr(self, name)):
                setattr(self, name, np.full(self.count, value))


def _or_zero(values: np.ndarray) -> np.ndarray:
    """The values, 0 in place of NaN: a quarter of the time of `nan_to_num`."""
    return np.where(np.isnan(values), 0.0, values)


def late_scores(evidence: Evidence) -> np.ndarray:
    """(n,) the late-interaction score of each record with token vectors, NaN of the others."""
    if not evidence.is_read.any():
        return np.full(evidence.count, np.nan)
    rows, others, far = evidence.neighbours
    lending = (far > 0) & (far < len(TOKEN_DECAY)) & evidence.is_read[rows] & evidence.is_read[others]
    rows, others, far = rows[lending], others[lending], far[lending]
    own = evidence.rows
    best = own.copy()
    if len(rows):
        first = np.flatnonzero(np.diff(rows, prepend=-1))  # a record's neighbours stand together
        lent = own[others] * np.array(TOKEN_DECAY, own.dtype)[far][:, None]
        best[rows[first]] = np.maximum(best[rows[first]], np.maximum.reduceat(lent, first, axis=0))
    late = np.maximum(best @ evidence.weights, 0.0) * (1 - PASSAGES_SHARE * np.log(evidence.passages)).clip(0.0)
    return np.where(evidence.is_read, late, np.nan)


def words_found(evidence: Evidence) -> float:
    """How surely a record has the query's words, 0 to 1: by the record that alone matches them best."""
    if not evidence.is_read.any():
        return 1.0
    best = float(np.max((evidence.rows @ evidence.weights)[evidence.is_read]))
    return min(1.0, max(0.0, (best - WORDS_FROM) / (WORDS_FULL - WORDS_FROM)))


def vector_trust(evidence: Evidence, words: float) -> float:
    """The factor of the vector's share, 1 to 5. `words`: from `words_found`."""
    apart = min(1.0, max(0.0, (CROWDED - evidence.background[0]) / (CROWDED - APART)))
    common, nowhere = (close + apart * (far - close) for close, far in zip(TRUST_CROWDED, TRUST_APART, strict=True))
    return nowhere + (common - nowhere) * words


def keyword_scores(evidence: Evidence) -> np.ndarray:
    """(n,) each record's own keywords, at most 1; a short one has a share of its best neighbour's too."""
    rows, others, far = evidence.neighbours
    lent = np.zeros(evidence.count)
    np.maximum.at(lent, rows, np.array(KEYWORD_LENT)[far] * evidence.keyword[others] * (evidence.passages[rows] == 1))
    return np.minimum(evidence.keyword + lent, 1.0)


def deviations(cosines: np.ndarray, background: tuple[float, float]) -> np.ndarray:
    """By how many standard deviations each of (n,) cosines exceeds the mean, 0 to MOST_DEVIATIONS.

    0 where there is none.
    """
    mean, deviation = background
    return np.clip(_or_zero((cosines - mean) / deviation), 0.0, MOST_DEVIATIONS)


def brevity(evidence: Evidence) -> np.ndarray:
    lengths = np.full(evidence.count, FULL_LENGTH)
    beside = np.unique(evidence.neighbours.rows)
    lengths[beside] = np.where(evidence.lengths[beside] > 0, evidence.lengths[beside], FULL_LENGTH)
    return np.sqrt(np.minimum(1.0, lengths / FULL_LENGTH))


def score_parts(evidence: Evidence, late: np.ndarray) -> Parts:
    """What each side adds to the scores: the parts' sum is the score, between 0 and 1. `late`: from `late_scores`.

    `asking` takes away, every other part adds.
    """
    words, short = words_found(evidence), brevity(evidence)
    is_embedded = ~(np.isnan(late) & np.isnan(evidence.vector))
    # without token vectors the whole text's vector stands for them, and words count in full: nothing else can tell
    instead = short * np.maximum(_or_zero(evidence.vector), 0.0)
    keyword_share = SHARES["keyword"] * np.where(evidence.is_read, words, 1.0)
    vector_share = SHARES["vector"] * vector_trust(evidence, words)
    own = deviations(evidence.vector, evidence.background)
    parts = {
        "late": SHARES["late"] * np.minimum(1.0, np.where(np.isnan(late), instead, late)) / WHOLE,
        "keyword": keyword_share * keyword_scores(evidence) / WHOLE,
        "vector": vector_share * (short * own) / WHOLE,
        "date": np.where(evidence.dates > 0, SHARES["date"] * evidence.dates / WHOLE, np.nan),
    }
    if not np.isnan(evidence.surroundings).all():
        more = deviations(evidence.surroundings, evidence.among_surroundings) - own
        parts["surroundings"] = np.where(more > 0, SURROUNDINGS_SHARE * short * more / WHOLE, np.nan)
    asking = ASKING_SHARE * evidence.asking * np.where(evidence.is_by_user, ASKING_OF_USER, 1.0)
    parts["asking"] = np.where(is_embedded & (asking > 0), -asking * totals(parts), np.nan)
    word_scores = SHARES["keyword"] * keyword_scores(evidence) / WHOLE + _or_zero(parts["date"])
    imputed = imputed_scores(word_scores, totals(parts), is_embedded)
    parts["imputed"] = np.where(is_embedded, np.nan, imputed - word_scores)
    before = totals(parts)
    speaker = np.minimum(SPEAKER_SHARE * before, np.maximum(0.0, 1.0 - before))
    parts["speaker"] = np.where(evidence.is_by_user, speaker, np.nan)
    before = totals(parts)
    is_related = (evidence.parents >= 0) & (evidence.parents != np.arange(evidence.count))
    parts["graph"] = np.where(is_related, np.maximum(0.0, GRAPH_SHARE * before[evidence.parents] - before), np.nan)
    if evidence.together is not None:
        before = totals(parts)
        gained = recalled_scores(evidence.together, before, voices(evidence, before))
        lift = np.minimum(gained, np.maximum(0.0, 1.0 - before))
        parts["recalled"] = np.where(lift > 0, lift, np.nan)
    return parts


def voices(evidence: Evidence, scores: np.ndarray) -> np.ndarray:
    """(n,) how surely the speaker of each is the one whose words are wanted, 0 to 1.

    Half of it where the query names one speaker of the candidates and it is that one; the other half by how far the
    one speaker outweighs all others among the FIRST (n,) scores.
    """
    speakers = evidence.speakers
    sure = np.zeros(evidence.count)
    named = np.intersect1d(speakers, np.array(evidence.named, np.int64))
    if len(named) == 1:
        sure += 0.5 * (speakers == named[0])
    best = np.argsort(-scores, kind="stable")[:FIRST]
    weights = np.array([rank_strength(rank) for rank in range(1, len(best) + 1)])
    said = {int(one): float(weights[speakers[best] == one].sum()) for one in speakers[best] if one != NOBODY}
    if said:
        most = max(said, key=lambda one: said[one])
        sure += 0.5 * max(0.0, 2 * said[most] / float(weights.sum()) - 1) * (speakers == most)
    return sure


def recalled_scores(together: Together, scores: np.ndarray, voices: np.ndarray) -> np.ndarray:
    """(n,) what (n,) scores gain by what was recalled together; nothing where the best ones were not.

    `voices`: (n,) how surely each is by the speaker whose words are wanted.
    """
    best = np.argsort(-scores, kind="stable")[:ANCHORS]
    anchors = np.zeros((len(best), len(scores)))
    number = np.full(len(scores), -1)
    number[best] = np.arange(len(best))
    at_anchor = number[together.rows] >= 0
    anchors[number[together.rows[at_anchor]], together.others[at_anchor]] = together.strengths[at_anchor]
    ranked = [rank_strength(rank) for rank in range(1, len(best) + 1)]
    expected = np.outer(ranked, ranked) * (1 - np.eye(len(best)))
    covered = np.minimum(anchors[:, best], expected).sum() / (expected.sum() or 1.0)
    trust = max(0.0, (covered - COVERED_FROM) / (1 - COVERED_FROM))
    beside = together.outside.copy()
    is_other = number[together.others] < 0  # what stands beside the best is this query's own answer
    np.maximum.at(beside, together.rows[is_other], together.strengths[is_other])
    often = RECALLED_SHARE * float(scores.max(initial=0.0)) * (beside + anchors.max(0, initial=0.0))
    gained: np.ndarray = trust * (often + VOICE_SHARE * voices * np.maximum(scores, 0.0))
    return gained


def imputed_scores(word_scores: np.ndarray, scores: np.ndarray, is_embedded: np.ndarray) -> np.ndarray:
    """(n,) scores; a text without a vector gets one by its place among the texts with vectors.

    It stands behind as many of these as by words alone. `word_scores`: (n,) what words alone say of each. The nearer
    the last vector comes, the fewer places words decide.
    """
    imputed = np.where(is_embedded, scores, word_scores)
    waiting = np.flatnonzero(~is_embedded & (word_scores > 0))
    best = np.sort(scores[is_embedded])[::-1]
    if not len(waiting) or not len(best):
        return imputed
    waiting = waiting[np.argsort(-word_scores[waiting], kind="stable")]
    own = word_scores[waiting]
    ahead = len(best) - np.searchsorted(np.sort(word_scores[is_embedded]), own, side="right")
    above, below = best[ahead - 1], np.append(best, 0.0)[ahead]
    # those between the same two share the distance out
    first, last = np.searchsorted(ahead, ahead, side="left"), np.searchsorted(ahead, ahead, side="right")
    places = np.searchsorted(-own, -own, side="right") - first
    between = below + (above - below) * (1 - places / (last - first + 1))
    imputed[waiting] = np.maximum(own, np.where(ahead == 0, best[0] + own, between))
    return imputed


def totals(parts: Parts) -> np.ndarray:
    """(n,) the parts' sums."""
    sums: np.ndarray = np.sum([_or_zero(values) for values in parts.values()], axis=0)
    return sums
