"""Data sets with known answers: conversations, and questions with the turns that answer them.

Read from files: LoCoMo (`locomo10.json`, or a folder of its conversations one by one), LongMemEval (a list of questions
with their haystacks), chats of one's own (`{"messages": [...], "questions": [...]}`). Made here, from texts of our own:
`messages` (long chat messages), `notes` (texts alone) and `small_talk` (short turns of two friends).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from streams.errors import Refused

BUILT_IN = ("messages", "notes", "small_talk")
LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_GOLD = re.compile(r"D(\d+):(\d+)")
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_SESSIONS = 12
_SEED = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said; `session` None for a text that stands alone. `role`: of who said it, where known."""

    turn_id: str
    session: str | None
    at: datetime
    text: str
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`turns` and `sessions` answer it; a set without turn labels has only sessions."""

    text: str
    kind: str
    turns: frozenset[str]
    sessions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is remembered together; its questions are asked of it alone. `unanswered`: on what was never said."""

    name: str
    turns: list[Turn]
    questions: list[Question]
    unanswered: list[Question] = field(default_factory=list)


def read_set(name: str) -> Iterator[Conversation]:
    """The conversations of a built-in set or of a file or folder. Raises Refused when it is none of these."""
    if name in BUILT_IN:
        yield {"messages": _messages, "notes": _notes, "small_talk": _small_talk}[name]()
        return
    path = Path(name)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise Refused(
            f"The data set {name!r} is neither a file, nor a folder with JSON files, nor one of {', '.join(BUILT_IN)}."
        )
    for file in files:
        try:
            body = orjson.loads(file.read_bytes())
            for number, item in enumerate(body if isinstance(body, list) else [body]):
                yield _read_item(item, f"{file.stem}-{number}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(
                f"{file.name} is not a data set of LoCoMo, LongMemEval or chats: {type(error).__name__}: {error}."
            ) from error


def _read_item(item: dict[str, Any], name: str) -> Conversation:
    if "conversation" in item:
        return _locomo(item, name)
    return _chat(item, name) if "messages" in item else _long_mem_eval(item, name)


def _chat(item: dict[str, Any], name: str) -> Conversation:
    """A chat of one's own.

    `{"messages": [{"id", "role", "content", "session", "time"}], "questions": [{"question", "kind", "messages"}]}`;
    `session`, `time` (ISO 8601) and `kind` may be missing; without a time messages are a second apart.
    """
    turns = []
    for place, message in enumerate(item["messages"]):
        said, session = f"{message['role']}: {message['content']}", message.get("session")
        at = datetime.fromisoformat(message["time"]) if "time" in message else _START + timedelta(seconds=place)
        turns.append(
            Turn(
                str(message["id"]), None if session is None else str(session), at.replace(tzinfo=at.tzinfo or UTC), said
            )
        )
    sessions = {turn.turn_id: turn.session for turn in turns}
    questions = []
    for asked in item["questions"]:
        gold = frozenset(map(str, asked["messages"])).intersection(sessions)
        named = frozenset(session for turn_id in gold if (session := sessions[turn_id]) is not None)
        if gold:
            questions.append(Question(asked["question"], asked.get("kind", "other"), gold, named))
    return Conversation(name, turns, questions)


def _locomo(item: dict[str, Any], name: str) -> Conversation:
    body = item["conversation"]
    numbers = sorted(
        int(key.split("_")[1]) for key in body if re.fullmatch(r"session_\d+", key) and isinstance(body[key], list)
    )
    turns = []
    for number in numbers:
        began = _moment(body.get(f"session_{number}_date_time", ""), number)
        for place, turn in enumerate(body[f"session_{number}"]):
            said = f"{turn['speaker']}: {turn.get('text', '')} {turn.get('blip_caption', '')}".strip()
            turns.append(Turn(turn["dia_id"], f"D{number}", began + timedelta(seconds=place), said))
    known = {turn.turn_id for turn in turns}
    questions = []
    for asked in item["qa"]:
        named = [f"D{int(a)}:{int(b)}" for entry in asked.get("evidence") or () for a, b in _GOLD.findall(str(entry))]
        gold = frozenset(known.intersection(named))
        if gold:
            sessions = frozenset(turn_id.split(":")[0] for turn_id in gold)
            questions.append(Question(asked["question"], LOCOMO_KINDS.get(asked["category"], "other"), gold, sessions))
    return Conversation(name, turns, questions)


def _long_mem_eval(item: dict[str, Any], name: str) -> Conversation:
    turns = []
    gold: set[str] = set()
    dates = item.get("haystack_dates") or [""] * len(item["haystack_sessions"])
    for number, (session, said, date) in enumerate(
        zip(item["haystack_session_ids"], item["haystack_sessions"], dates, strict=True)
    ):
        began = _moment(date, number)
        for place, turn in enumerate(said):
            turn_id = f"{number}:{place}"
            turns.append(
                Turn(
                    turn_id,
                    f"{number}/{session}",
                    began + timedelta(seconds=place),
                    f"{turn['role']}: {turn['content']}",
                )
            )
            if turn.get("has_answer"):
                gold.add(turn_id)
    answers = set(item["answer_session_ids"])
    sessions = frozenset(
        f"{number}/{session}" for number, session in enumerate(item["haystack_session_ids"]) if session in answers
    )
    return Conversation(name, turns, [Question(item["question"], item["question_type"], frozenset(gold), sessions)])


_FORMATS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y-%m-%dT%H:%M:%S")


def _moment(text: str, number: int) -> datetime:
    """The session's time; a made one, in order, when it cannot be read."""
    for format in _FORMATS:
        try:
            return datetime.strptime(text.strip(), format).replace(tzinfo=UTC)
        except ValueError:
            continue
    return _START + timedelta(days=number)


@dataclass(frozen=True, slots=True)
class _Topic:
    """Two paragraphs and a fact of one matter. Questions about the whole, about the fact, and in its own words."""

    name: str
    paragraphs: tuple[str, str]
    fact: str
    questions: tuple[tuple[str, str], ...]


def _written() -> tuple[list[_Topic], list[str]]:
    """The topics, and paragraphs of chatter that could stand anywhere."""
    text = resources.files("thalweg.bench").joinpath("data/long_messages.txt").read_text(encoding="utf-8")
    topics, chatter = [], []
    for block in text.strip().split("\n\n"):
        name, *lines = block.split("\n")
        parts = [(line[0], line[3:]) for line in lines]
        if name == "# chatter":
            chatter = [said for _, said in parts]
            continue
        first, second = (said for kind, said in parts if kind == "P")
        asked = {kind: said for kind, said in parts if kind != "P"}
        questions = (("gist", asked["G"]), ("detail", asked["Q"]), ("words", asked["K"]))
        topics.append(_Topic(name.removeprefix("# "), (first, second), asked["F"], questions))
    return topics, chatter


def _messages() -> Conversation:
    """Twelve sessions of long messages.

    Each paragraph of a topic stands among two to eight paragraphs of chatter.
    """
    topics, chatter = _written()
    chance = random.Random(_SEED)
    chance.shuffle(topics)

    def message(*parts: str) -> str:
        body = list(parts)
        for said in chance.sample(chatter, chance.randint(2, 8)):
            body.insert(chance.randint(0, len(body)), said)
        return "\n\n".join(body)

    turns: list[Turn] = []
    questions: list[Question] = []
    for number in range(_SESSIONS):
        session = f"s{number}"

        def say(text: str, session: str = session, began: datetime = _START + timedelta(days=number)) -> str:
            turns.append(Turn(f"{session}:{len(turns)}", session, began + timedelta(seconds=len(turns)), text))
            return turns[-1].turn_id

        for topic in topics[number * len(topics) // _SESSIONS : (number + 1) * len(topics) // _SESSIONS]:
            first = say("Dana: " + message(topic.paragraphs[0]))
            second = say("Assistant: " + message(topic.paragraphs[1], topic.fact))
            gold = {"gist": {first, second}, "detail": {second}, "words": {first, second}}
            questions += [
                Question(said, kind, frozenset(gold[kind]), frozenset([session])) for kind, said in topic.questions
            ]
            if chance.random() < 0.7:
                say("Dana: " + message())
    return Conversation("messages", turns, questions)


def _notes() -> Conversation:
    """Every paragraph and every fact as a note of its own, in no session."""
    topics, chatter = _written()
    notes = [
        (f"{topic.name}/{part}", text) for topic in topics for part, text in enumerate((*topic.paragraphs, topic.fact))
    ]
    notes += [(f"chatter/{number}", text) for number, text in enumerate(chatter)]
    random.Random(_SEED).shuffle(notes)
    turns = [Turn(name, None, _START + timedelta(hours=number), text) for number, (name, text) in enumerate(notes)]
    gold: dict[str, Sequence[int]] = {"gist": (0, 1), "detail": (2,), "words": (0, 1, 2)}
    questions = [
        Question(said, kind, frozenset(f"{topic.name}/{part}" for part in gold[kind]), frozenset())
        for topic in topics
        for kind, said in topic.questions
    ]
    return Conversation("notes", turns, questions)


def _small_talk() -> Conversation:
    """Sessions of two friends, each below its day.

    A line `? …` asks for what the turn above it says; below `# hard` one asks for the turns of which it quotes parts,
    each after an @; below `# never: kind` for what was never said.
    """
    text = resources.files("thalweg.bench").joinpath("data/small_talk.txt").read_text(encoding="utf-8")
    turns: list[Turn] = []
    questions: list[Question] = []
    unanswered: list[Question] = []
    head = ""
    for line in text.splitlines():
        if line.startswith("# "):
            head = line.removeprefix("# ")
        elif head.startswith("never: "):
            unanswered.append(Question(line, head.removeprefix("never: "), frozenset(), frozenset()))
        elif head == "hard":
            asked, *quoted = line.split(" @ ")
            gold = [turn for turn in turns if any(part in turn.text for part in quoted)]
            questions.append(_asked(asked, "multi-hop" if len(gold) > 1 else "hard", gold))
        elif line.startswith("? "):
            questions.append(_asked(line.removeprefix("? "), "single-hop", turns[-1:]))
        else:
            at = datetime.fromisoformat(head).replace(hour=19, tzinfo=UTC) + timedelta(seconds=len(turns))
            turns.append(Turn(f"t{len(turns)}", head, at, line))
    return Conversation("small_talk", turns, questions, unanswered)


def _asked(text: str, kind: str, gold: Sequence[Turn]) -> Question:
    sessions = frozenset(turn.session for turn in gold if turn.session is not None)
    return Question(text, kind, frozenset(turn.turn_id for turn in gold), sessions)
