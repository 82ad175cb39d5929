"""A text with one to three words changed and its meaning kept: a synonym, a filler more or less."""

from __future__ import annotations

import random
import re

MOST = 3
_SYNONYMS = [
    "great/wonderful",
    "amazing/incredible",
    "awesome/fantastic",
    "good/fine",
    "nice/lovely",
    "happy/glad",
    "excited/thrilled",
    "really/truly",
    "very/extremely",
    "so/quite",
    "totally/completely",
    "definitely/certainly",
    "maybe/perhaps",
    "just/simply",
    "also/too",
    "especially/particularly",
    "recently/lately",
    "often/frequently",
    "big/huge",
    "small/little",
    "important/essential",
    "beautiful/gorgeous",
    "tough/difficult",
    "hard/tricky",
    "scared/afraid",
    "tired/exhausted",
    "proud/pleased",
    "interesting/fascinating",
    "fun/enjoyable",
    "cool/neat",
    "special/unique",
    "strong/powerful",
    "think/believe",
    "love/adore",
    "like/enjoy",
    "want/wish",
    "hope/trust",
    "help/assist",
    "start/begin",
    "started/began",
    "talk/chat",
    "talking/chatting",
    "talked/chatted",
    "make/create",
    "making/creating",
    "made/created",
    "get/obtain",
    "got/received",
    "keep/continue",
    "see/notice",
    "look/seem",
    "looks/seems",
    "feel/sense",
    "show/display",
    "showed/displayed",
    "buy/purchase",
    "bought/purchased",
    "try/attempt",
    "tried/attempted",
    "need/require",
    "use/employ",
    "work/labour",
    "found/discovered",
    "find/discover",
    "learn/study",
    "happen/occur",
    "happened/occurred",
    "said/mentioned",
    "tell/inform",
    "inspire/motivate",
    "inspired/motivated",
    "inspiring/motivating",
    "support/encourage",
    "enjoyed/loved",
    "finished/completed",
    "kids/children",
    "kid/child",
    "photo/picture",
    "pic/photo",
    "movie/film",
    "job/occupation",
    "folks/people",
    "people/persons",
    "trip/journey",
    "house/home",
    "store/shop",
    "stuff/things",
    "way/manner",
    "idea/notion",
    "place/spot",
    "road/street",
    "car/vehicle",
    "present/gift",
    "party/celebration",
    "bike/bicycle",
    "road/route",
    "garden/yard",
    "friend/pal",
    "family/household",
    "chance/opportunity",
    "goal/aim",
    "problem/issue",
    "challenge/difficulty",
    "memory/recollection",
    "moment/instant",
    "wow/whoa",
    "hey/hi",
    "yeah/yes",
    "yep/yes",
    "sure/certainly",
    "ok/okay",
    "congrats/congratulations",
    "lots/plenty",
    "awesome/superb",
]
_SYNONYM = {word: other for pair in _SYNONYMS for word, other in [pair.split("/")]}
_LONGER = {
    "i'm": "I am",
    "i've": "I have",
    "i'll": "I will",
    "i'd": "I would",
    "it's": "it is",
    "that's": "that is",
    "you're": "you are",
    "you've": "you have",
    "we're": "we are",
    "we've": "we have",
    "they're": "they are",
    "what's": "what is",
    "there's": "there is",
    "let's": "let us",
    "don't": "do not",
    "didn't": "did not",
    "can't": "cannot",
    "isn't": "is not",
    "wasn't": "was not",
    "doesn't": "does not",
    "haven't": "have not",
}
_FILLERS = ("really", "just", "so", "very", "also", "actually", "definitely", "totally", "quite", "pretty")
_WORD = re.compile(r"[\w'’]+")


def reworded(text: str, seed: str) -> str:
    """The text with one to MOST words changed, the same for the same seed; never the text itself."""
    chance = random.Random(seed)
    words = list(_WORD.finditer(text))
    places = [place for place, word in enumerate(words) if _changed(word[0]) is not None]
    chosen = set(chance.sample(places, min(len(places), chance.randint(1, MOST))))
    parts, end = list[str](), 0
    for place, word in enumerate(words):
        if place in chosen:
            parts += [text[end : word.start()], _changed(word[0]) or ""]
            end = word.end()
    found = re.sub(r" {2,}", " ", "".join([*parts, text[end:]])).strip()
    return found if found != text else _with_filler(text, words, chance)


def _changed(word: str) -> str | None:
    """What can stand in the place of a word: nothing for a filler; None where nothing is known."""
    small = word.lower().replace("’", "'")
    other = "" if small in _FILLERS and word.islower() else _LONGER.get(small, _SYNONYM.get(small))
    if other and word[0].isupper():
        return other[0].upper() + other[1:]
    return other


def _with_filler(text: str, words: list[re.Match[str]], chance: random.Random) -> str:
    """With one filler more, at the end where there is nothing else."""
    if len(words) < 2:
        return f"{text} Really."
    place = words[chance.randrange(1, len(words))].start()
    return f"{text[:place]}{chance.choice(_FILLERS)} {text[place:]}"
