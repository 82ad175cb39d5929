"""`thalweg bench`: every command runs, tells what it declares, and asserts no time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcp_ingress.inventory import find_tools
from streams.log import open_log
from streams.topics import MEMORY
from tests.bench.test_recall import CHAT
from thalweg.bench.bare_log import memory_record
from thalweg.bench.examples import EXEMPT_TOOLS, example, write_tool
from thalweg.bench.memory import Samples
from thalweg.bench.pulse import SETTLED, noticed_after
from thalweg.bench.report import Figure, Report, Target, print_report
from thalweg.bench.scratch import texts
from thalweg.cli import cli

pytestmark = pytest.mark.timeout(300)

MACHINE = {"system", "python", "cores", "load_1m", "load_1m_after"}


def run(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["bench", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.output)
    assert set(report) == {"bench", "machine", "settings", "figures"}
    assert set(report["machine"]) == MACHINE
    assert all(figure["value"] > 0 for figure in report["figures"].values())
    return report["figures"]


def quantiles(*names: str) -> set[str]:
    return {f"{name}_p{quantile}_ms" for name in names for quantile in (50, 95, 99)}


def test_a_figure_is_printed_whole_however_long_its_name_and_narrow_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    report = Report("trust", {})
    report.add("conversation_0_to_conversation_1_similarity_ece_after_a_temperature", 12345.6, "rows/s", Target(7.25))
    print_report(report, as_json=False)
    printed = capsys.readouterr().out
    assert "…" not in printed and all(each in printed for each in ("12,346", "rows/s", "≤ 7.25", "missed"))


@pytest.mark.process
def test_write_tells_acceptance_and_searchability_beside_bare_appends_and_the_bare_model() -> None:
    figures = run("write", "--callers", "1,2", "--n", "4", "--embedder", "hashing")
    expected = quantiles(
        "accept_1", "searchable_1", "accept_2", "searchable_2", "bare_append_1", "bare_append_2", "bare_model"
    )
    ratios = {f"searchable_of_bare_{callers}_p{quantile}" for callers in (1, 2) for quantile in (50, 95, 99)}
    assert set(figures) == expected | quantiles("bare_spine_1", "bare_spine_2") | ratios | {
        "writes_1_per_s",
        "writes_2_per_s",
    }
    ours, bare = figures["searchable_1_p95_ms"]["value"], figures["bare_spine_1_p95_ms"]["value"]
    assert figures["searchable_of_bare_1_p95"]["value"] == pytest.approx(ours / bare, rel=0.01)
    assert figures["searchable_1_p95_ms"]["target"] == "≤ 20"
    assert figures["bare_append_1_p50_ms"]["bare"]


@pytest.mark.process
def test_any_write_tool_can_be_measured_and_its_promise_stands_beside_it() -> None:
    figures = run(
        "write", "--tool", "belief_create", "--callers", "1", "--n", "2", "--size", "7", "--embedder", "hashing"
    )
    assert figures["accept_1_p95_ms"]["target"] == "≤ 40" and figures["searchable_1_p95_ms"]["target"] is None
    assert figures["applied_7_per_s"]["value"] > 0  # on a store that held something
    result = CliRunner().invoke(cli, ["bench", "write", "--tool", "store_episode", "--size", "7"])
    assert result.exit_code == 1 and "belief_create" in result.output


def test_every_write_tool_is_called_with_arguments_that_it_accepts() -> None:
    for tool in find_tools():
        if tool.kind == "write" and tool.name not in EXEMPT_TOOLS:
            find_tools().checks[tool.name](example(write_tool(tool.name), texts(1)[0]))


@pytest.mark.process
def test_a_search_tool_is_measured_over_rows_that_came_about_as_in_use() -> None:
    figures = run(
        "search", "--tool", "hybrid_search", "--sizes", "60", "--n", "20", "--callers", "1,2", "--embedder", "hashing"
    )
    runs = "hybrid_search_60", "hybrid_search_60_2_callers"
    told = quantiles(*runs, "bare_hnsw_60", "bare_tantivy_60") | {"applied_60_per_s", "resident_60_mb"}
    assert set(figures) == told | {f"{each}_{what}" for each in runs for what in ("cpu_ms", "per_s")}
    assert figures["hybrid_search_60_p95_ms"]["target"] == "≤ 30"


@pytest.mark.process
@pytest.mark.parametrize(
    ("tool", "promised", "target"), [("search_graph", "p95", "≤ 30"), ("search_teleological", "p99", "≤ 60")]
)
def test_searches_of_the_graph_are_measured_over_memories_that_come_with_their_vectors(
    tool: str, promised: str, target: str
) -> None:
    figures = run("search", "--tool", tool, "--sizes", "60", "--n", "20", "--embedder", "hashing", "--no-bare")
    costs = {"applied_60_per_s", f"{tool}_60_cpu_ms", f"{tool}_60_per_s", "resident_60_mb"}
    assert set(figures) == quantiles(f"{tool}_60") | costs
    targets = {name: figure["target"] for name, figure in figures.items() if figure["target"] is not None}
    assert targets == {f"{tool}_60_{promised}_ms": target}


@pytest.mark.parametrize(
    ("bench", "tool", "said"),
    [("write", "ping", "it measures"), ("search", "hybrid_serch", "it measures"), ("write", "wm", "no tool")],
)
def test_a_tool_that_cannot_be_measured_is_refused_by_name(bench: str, tool: str, said: str) -> None:
    result = CliRunner().invoke(cli, ["bench", bench, "--tool", tool])
    assert result.exit_code == 1 and said in result.output, result.output


@pytest.mark.process
def test_ingest_tells_rates_and_their_share_of_a_bare_consumer() -> None:
    figures = run("ingest", "--accepted", "50", "--n", "40", "--rate", "5", "--seconds", "1", "--embedder", "hashing")
    rates = {
        "accepted_per_s",
        "bulk_published_per_s",
        "bulk_applied_per_s",
        "replay_per_s",
        "bare_sink_per_s",
        "replay_of_bare_sink",
    }
    assert set(figures) == rates | {"rate_kept_per_s"} | quantiles("accepted", "searchable_at_rate")
    assert figures["accepted_per_s"]["target"] == "≥ 2000"
    assert figures["bulk_applied_per_s"]["target"] == "≥ 10000"
    assert figures["replay_of_bare_sink"]["target"] == "≥ 0.5"


@pytest.mark.process
def test_search_tells_each_filter_quiet_and_after_a_write_beside_the_bare_indexes() -> None:
    figures = run("search", "--sizes", "200", "--n", "3", "--embedder", "hashing")
    kinds = [f"search_200_{name}{when}" for name in ("all", "1pct", "50pct", "99pct") for when in ("", "_after_write")]
    told = quantiles(*kinds, "encode_200", "bare_hnsw_200", "bare_tantivy_200", "door_200", "door_200_rebuilding")
    told |= {f"recall_200_{name}" for name in ("all", "1pct", "50pct", "99pct")}
    assert set(figures) == told | {
        "indexes_200_s",
        "rebuild_200_s",
        "answers_again_200_s",
        "resident_200_mb",
        "resident_200_anonymous_mb",
    }
    assert all(figures[f"recall_200_{name}"]["value"] == 1.0 for name in ("all", "1pct", "50pct", "99pct"))
    assert figures["search_200_all_p95_ms"]["target"] == "≤ 30"


@pytest.mark.process
@pytest.mark.parametrize("sessions", [(), ("--no-sessions",)])
def test_recall_through_the_tools_tells_what_the_first_ten_rows_hold(tmp_path: Path, sessions: tuple[str, ...]) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    figures = run("recall", "--dataset", str(tmp_path), "--through-tools", "--embedder", "hashing", *sessions)
    recalls = {f"{level}_all_r10" for level in ("turn", "session", "session_of_rows")}
    assert recalls | {"turn_when_r10", "rows_per_answer", "tokens_per_answer", "query_p95_ms"} <= set(figures)
    assert all(figures[name]["value"] == 100.0 for name in recalls), figures
    assert figures["questions"]["value"] == 2
    assert 1 <= figures["distinct_texts_per_answer"]["value"] <= figures["rows_per_answer"]["value"] <= 10
    assert figures["tokens_per_answer"]["value"] <= figures["tokens_largest"]["value"]


@pytest.mark.parametrize("options", [("--no-sessions",), ("--through-tools", "--embedded", "0.5")])
def test_options_of_recall_that_do_not_go_together_are_a_usage_error(options: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["bench", "recall", *options])
    assert result.exit_code == 2 and "--through-tools" in result.output


@pytest.mark.process
def test_start_tells_warm_and_cold_and_what_the_node_weighs() -> None:
    figures = run("start", "--n", "1", "--embedder", "hashing")
    names = {"initialize_first_ever_ms", "node_resident_mb", "bare_python_ms"}
    assert set(figures) == names | {
        f"initialize_{kind}_{figure}_ms" for kind in ("warm", "cold") for figure in ("p50", "max")
    }
    assert figures["initialize_warm_p50_ms"]["target"] == "≤ 300"


@pytest.mark.process
def test_fairness_tells_what_calm_clients_wait_alone_and_beside_a_flood() -> None:
    figures = run("fairness", "--floods", "ping,garbage", "--seconds", "1.6", "--embedder", "hashing")
    for flood in ("ping", "garbage"):
        assert figures[f"{flood}_unrefused"] == {"value": 1.0, "unit": "", "target": "≥ 1", "met": True, "bare": False}
        for tool in ("journal_write", "journal_query"):
            alone, beside = (figures[f"{flood}_{tool}_{when}_p95_ms"]["value"] for when in ("alone", "beside"))
            assert figures[f"{flood}_{tool}_p95_ratio"]["value"] == pytest.approx(beside / alone, rel=0.01)
            assert figures[f"{flood}_{tool}_p95_ratio"]["target"] == "≤ 1.5"
    result = CliRunner().invoke(cli, ["bench", "fairness", "--floods", "rain"])
    assert result.exit_code == 1 and "ping" in result.output


@pytest.mark.process
@pytest.mark.process
def test_memory_tells_what_a_node_weighs_and_whether_it_grows_while_every_tool_is_called() -> None:
    figures = run("memory", "--minutes", "0.4", "--size", "20", "--embedder", "hashing")
    assert {"resident_before_mb", "resident_first_half_mb", "resident_second_half_mb"} <= set(figures)
    assert figures["resident_largest_mb"]["target"] == "≤ 600" and figures["growth_second_half"]["target"] == "≤ 1.05"
    assert figures["calls"]["value"] > len(find_tools()) and figures["calls_accepted"]["value"] > 0.8


def test_growth_compares_the_last_quarter_with_the_one_before() -> None:
    rising = [100.0 + number for number in range(100)]
    assert Samples(rising).growth == pytest.approx(187 / 162, rel=0.01)
    assert Samples(rising[:50] + [150.0] * 50).growth == 1.0


def test_a_table_is_printed_for_people() -> None:
    result = CliRunner().invoke(cli, ["bench", "search", "--sizes", "50", "--n", "2", "--embedder", "hashing"])
    assert result.exit_code == 0, result.output
    assert "rebuild_50_s" in result.output and "≤ 30" in result.output


def test_a_list_that_is_none_is_a_usage_error() -> None:
    assert CliRunner().invoke(cli, ["bench", "write", "--callers", "1,x"]).exit_code == 2


def test_a_target_is_met_from_its_own_side() -> None:
    assert Target(20.0).is_met(20.0) and not Target(20.0).is_met(20.1)
    assert Target(0.5, at_least=True).is_met(0.5) and not Target(0.5, at_least=True).is_met(0.49)
    assert Figure(3.0, "ms").to_json()["met"] is None


def test_the_same_seed_gives_the_same_texts_and_all_of_them_differ() -> None:
    assert texts(50, seed=3) == texts(50, seed=3)
    assert len(set(texts(50))) == 50
    assert {len(text.split()) for text in texts(50)} == {24}


def test_a_log_that_holds_memories_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path / 'log.db'}"
    written = asyncio.run(_memories(url, publish=1))
    for arguments in (["write", "--n", "1"], ["ingest", "--n", "1"], ["start", "--n", "1"]):
        result = CliRunner().invoke(cli, ["bench", *arguments, "--broker", url, "--embedder", "hashing"])
        assert (
            result.exit_code == 1
            and "thalweg.memory.v1 (1)" in result.output
            and "a broker of its own" in result.output
        )
    assert asyncio.run(_memories(url)) == written


async def _memories(url: str, publish: int = 0) -> int:
    """How many records the memory topic holds, after this many more."""
    log = open_log(url)
    await log.start()
    try:
        await log.create_topics([MEMORY])
        await log.publish([memory_record("one that somebody had") for _ in range(publish)])
        return sum((await log.end_offsets([MEMORY.name])).values())
    finally:
        await log.stop()


@pytest.mark.process
def test_pulse_tells_how_often_it_is_open_and_when_it_notices_another_matter(tmp_path: Path) -> None:
    for name, matter in (("sea", "the tide, the harbour and ship"), ("code", "the parser, the lexer and token")):
        messages = [
            {"id": f"{name}{number}", "role": "user", "content": f"About {matter} number {number % 17}, then {number}."}
            for number in range(SETTLED + 30)
        ]
        body = {"messages": messages, "questions": []}
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    result = CliRunner().invoke(cli, ["bench", "pulse", str(tmp_path), "--embedder", "hashing", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)["figures"]
    for pair in ("0_to_1", "1_to_0"):
        assert figures[f"{pair}_noticed_after"]["value"] <= 3
        assert figures[f"{pair}_open"]["value"] + figures[f"{pair}_not_open"]["value"] == 100
    assert len(figures) == 10


@pytest.mark.process
def test_views_tells_what_each_view_that_the_model_gives_finds_and_what_it_costs() -> None:
    asked = ["--dataset", "messages", "--embedder", "hashing", "--questions", "5"]
    result = CliRunner().invoke(cli, ["bench", "views", *asked, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)["figures"]
    found = {name.removesuffix("_r10") for name in figures if name.endswith("_r10")}
    assert {"E1", "E9", "E13", "bm25", "mean"} <= found and not {"E5", "E11", "E12"} & found, "without token vectors"
    assert figures["available_views"]["value"] == 10
    assert figures["views_of_24_words_p50_ms"]["value"] > 0 and figures["align_400_p50_ms"]["value"] > 0


@pytest.mark.process
def test_a_model_of_a_view_is_said_to_take_bytes_and_milliseconds_a_memory() -> None:
    asked = ["--dataset", "messages", "--embedder", "hashing", "--questions", "5", "--view-models", "E7=minilm"]
    result = CliRunner().invoke(cli, ["bench", "views", *asked, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)["figures"]
    passages = figures["E7_bytes_a_memory"]["value"] / (384 * 2 + 33)
    assert 1 < passages < 3, "two bytes a number, beside what finds the record; a long message has several passages"
    assert figures["E7_cpu_ms_a_memory"]["value"] > 0 and figures["E7_r10"]["value"] > 0


@pytest.mark.process
def test_functions_of_transcripts_are_asked_for_by_the_words_of_their_names(tmp_path: Path) -> None:
    texts_of = [
        f"func load{name}File(path string) error {{\n    // reads one file of the kind\n"
        f"    return open{name}(path, 1)\n}}"
        for name in ("Tide", "Harbour", "Gauge")
    ]
    lines = [json.dumps({"message": {"content": [{"text": f"Here it is:\n{text}\n"}]}}) for text in texts_of]
    (tmp_path / "one.jsonl").write_text("\n".join(lines) + "\n{cut off")
    asked = ["bench", "views", "--functions", str(tmp_path), "--embedder", "hashing", "--json"]
    result = CliRunner().invoke(cli, asked)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)["figures"]
    assert figures["questions"]["value"] == 3 and figures["E7_r10"]["value"] == 100
    (tmp_path / "one.jsonl").write_text("{}")
    refused = CliRunner().invoke(cli, asked)
    assert refused.exit_code != 0 and "functions" in refused.output


def test_a_change_is_noticed_with_the_first_entropy_above_the_cut() -> None:
    assert noticed_after([{"entropy": value} for value in (0.4, 0.5, 0.51, 0.2)]) == 3
    assert noticed_after([{"entropy": 0.5}] * 4) == 5
