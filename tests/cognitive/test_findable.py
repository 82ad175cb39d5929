"""Stored means findable: an insight is first for its own text, and among the first five for three of its rare words."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cognitive.node import opened
from tests.examples import examples

VOCABULARIES = [
    "river valley granite erosion lantern harbour thicket meadow quarry orchard glacier cathedral",
    "Gebirge Flüsse Straße Ähren Dampfschiff Übergang Wälder Kirchturm Großmutter Mühle Brücke Nebel",
    "rivière vallée forêt château éphémère garçon naïveté œuvre cœur hiver grève moulin",
    "река долина берёза гранит мост туман ледник мельница сад камень озеро поле",
    "ποτάμι κοιλάδα γέφυρα ομίχλη παγετώνας δέντρο πέτρα λίμνη θάλασσα μύλος κήπος ψωμί",
    "نهر واد جسر ضباب حجر بحيرة بحر طاحونة حديقة خبز شجرة جبل",
    "नदी घाटी पुल कोहरा पत्थर झील समुद्र चक्की बगीचा रोटी पेड़ पहाड़",
    "강물 골짜기 다리 안개 바위 호수 바다 물레방아 정원 나무 빙하 등대",
    "河流 山谷 桥梁 大雾 石头 湖泊 海洋 磨坊 花园 面包 树木 灯塔",
    "かわ たに はし きり いわ みずうみ うみ すいしゃ にわ パン 木々 灯台",
    "connect connected connecting connection connections connector run runs running ran the of",
    "🌊 🏔 🌉 🌫 🪨 🏞 🐟 🌾 🌷 🥖 🌳 🗼",
]
WORDS = [vocabulary.split() for vocabulary in VOCABULARIES]


def texts() -> st.SearchStrategy[list[str]]:
    """Distinct texts of five to nine words, each in one language."""
    text = st.sampled_from(WORDS).flatmap(
        lambda words: st.lists(st.sampled_from(words), min_size=5, max_size=9, unique=True)
    )
    return st.lists(text.map(" ".join), min_size=2, max_size=8, unique_by=lambda text: frozenset(text.split()))


@settings(max_examples=examples(3, 12), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(texts())
def test_an_insight_is_found_by_its_own_text_and_by_three_of_its_rare_words(insights: list[str]) -> None:
    asyncio.run(_all_found(insights))


async def _all_found(insights: list[str]) -> None:
    held = Counter(word for text in insights for word in text.split())
    with TemporaryDirectory() as home:
        async with opened(Path(home)) as node:
            ids = {
                text: (await node.ok("compress_to_l2_insight", content=text, source_ids=[]))["id"] for text in insights
            }
            for text, number in ids.items():
                own = await node.ok("hybrid_search", query_text=text)
                assert own["results"][0]["id"] == number, (text, own["results"])
                rare = [word for word in text.split() if held[word] == 1][:3]
                if len(rare) == 3:
                    found = await node.ok("hybrid_search", query_text=" ".join(rare))
                    assert number in [each["id"] for each in found["results"]], (rare, found["results"])


def test_text_without_spaces_between_words_is_found_too() -> None:
    asyncio.run(
        _all_found(["山川草木は美しい景色です", "図書館で歴史の本を読む", "今天天气很好适合散步", "ภาษาไทยไม่มีช่องว่าง"])
    )


def test_exact_german_words_are_found_although_english_rules_would_cut_them() -> None:
    asyncio.run(_all_found(["Die Lösungen liegen vor", "Die Lösung liegt nahe", "Übungen machen Meister"]))


def test_forms_of_one_word_are_told_apart_and_no_word_is_too_common_to_be_looked_for() -> None:
    asyncio.run(
        _all_found(
            [
                "connect",
                "connected",
                "connecting",
                "connection",
                "connections",
                "to be or not to be",
                "to be",
                "river",
                "river river",
            ]
        )
    )


def test_symbols_alone_and_texts_of_many_pages_are_found() -> None:
    pages = [
        " ".join(f"{word}{page}" if place % 7 else word for place, word in enumerate(WORDS[page % 8] * 60))
        for page in range(3)
    ]
    asyncio.run(_all_found(["🎉🎊", "🎉🎊🎉", "→ ∑ ∞", "¡!", *pages]))
