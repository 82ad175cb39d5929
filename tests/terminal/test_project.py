"""`--namespace auto`: one namespace for a project, wherever in it one works, and another for each other project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from streams.errors import SettingsError
from streams.namespaces import check_namespace
from thalweg.cli import cli
from thalweg.client import stdio
from thalweg.client.project import project_namespace
from thalweg.settings import load


def git(*arguments: str, at: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=at, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "parser"
    (place / "src" / "deep").mkdir(parents=True)
    git("init", at=place)
    git("commit", "--allow-empty", "-m", "begin", at=place)
    return place


def test_every_directory_of_a_repository_is_of_one_namespace_with_its_name(repository: Path) -> None:
    namespace = project_namespace(repository)
    assert re.fullmatch(r"parser-[0-9a-f]{8}", namespace)
    assert project_namespace(repository / "src" / "deep") == namespace


def test_a_worktree_shares_the_namespace_of_its_repository(repository: Path) -> None:
    git("worktree", "add", "../elsewhere", at=repository)
    assert project_namespace(repository.parent / "elsewhere") == project_namespace(repository)


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    git("init", at=whole)
    git("submodule", "add", str(repository), "part", at=whole)
    names = {project_namespace(place) for place in (whole, whole / "part", repository)}
    assert len(names) == 3


def test_two_projects_of_one_name_are_two_namespaces_and_a_link_to_one_is_not(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "parser"
    other.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(repository)
    assert project_namespace(other) != project_namespace(repository) == project_namespace(link)


def test_a_directory_without_a_repository_is_its_own_project(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert project_namespace(tmp_path / "notes").startswith("notes-") and project_namespace(Path("/")).startswith(
        "root-"
    )


@pytest.mark.parametrize("damaged", ["", "gitdir:", "gitdir: ../nowhere", "\udcff", "gitdir: " + "x" * 10_000])
def test_a_damaged_git_file_marks_a_project_by_its_folder(tmp_path: Path, damaged: str) -> None:
    (tmp_path / ".git").write_text(damaged, errors="surrogateescape")
    assert project_namespace(tmp_path).startswith(f"{tmp_path.name[:100]}-")


@pytest.mark.parametrize("name", ["n" * 250, "a b ", "\nline", "bytes \udcff", "東京の記憶", " "])
def test_whatever_the_folder_is_called_its_namespace_is_accepted(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    namespace = project_namespace(place)
    assert check_namespace(namespace) == namespace


def test_hooks_imports_and_the_pump_mean_the_same_by_auto(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    monkeypatch.setattr(stdio, "pump", lambda home, command, scope: asked.update(scope) or 0)
    monkeypatch.chdir(repository / "src")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    assert stdio.run(["--namespace", "auto"]) == 0
    assert asked == {"namespace": project_namespace(repository)}
    assert load({"namespace": "auto"}).namespace == project_namespace(repository)
    assert load({}, {"THALWEG_NAMESPACE": "auto"}).namespace == project_namespace(repository)
    monkeypatch.chdir("/")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(repository))
    assert load({"namespace": "auto"}).namespace == project_namespace(repository), "wherever the session has moved to"


def test_a_nodes_own_namespace_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "thalweg.toml").write_text('namespace = "auto"')
    with pytest.raises(SettingsError, match="a client's, by the project it runs in"):
        load({"home": tmp_path}, {})


def test_flags_go_before_variables_and_the_node_judges_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(stdio, "pump", lambda home, command, scope: seen.append((home, scope)) or 0)
    monkeypatch.setenv("THALWEG_NAMESPACE", "variable")
    monkeypatch.setenv("THALWEG_TOOLSETS", "talos")
    monkeypatch.setenv("THALWEG_READ_ONLY", "perhaps")
    assert stdio.run(["--namespace=a/b", "--toolsets", "core,talos", "--home", str(tmp_path)]) == 0
    assert stdio.run(["--read-only", "--home", str(tmp_path)]) == 0
    assert seen == [
        (tmp_path, {"namespace": "a/b", "toolsets": "core,talos", "read_only": "perhaps"}),
        (tmp_path, {"namespace": "variable", "toolsets": "talos", "read_only": "true"}),
    ]


@pytest.mark.parametrize("arguments", [["--namespace"], ["--toolsets="], ["stray"], ["--readonly"]])
def test_a_flag_that_is_not_understood_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stdio.run(arguments) == 2
    assert arguments[0].rstrip("=") in capsys.readouterr().err


def test_what_a_client_asks_to_see_is_not_what_the_node_that_it_starts_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thalweg.client.launch import Launcher, NodeError

    for name in ("NAMESPACE", "TOOLSETS", "READ_ONLY", "EMBEDDER"):
        monkeypatch.setenv(f"THALWEG_{name}", "mine")
    show = "import os, sys; print(sorted(name for name in os.environ if name.startswith('THALWEG_'))); sys.exit(2)"
    with pytest.raises(NodeError) as ended:
        Launcher(tmp_path, [sys.executable, "-c", show]).connect()
    assert "THALWEG_EMBEDDER" in str(ended.value)
    assert not any(f"THALWEG_{name}" in str(ended.value) for name in ("NAMESPACE", "TOOLSETS", "READ_ONLY"))
    assert os.environ["THALWEG_NAMESPACE"] == "mine"


def test_a_search_looks_into_the_namespace_of_its_environment_unless_a_flag_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def ask(home: Path, command: str, **request: Any) -> dict[str, Any]:
        asked.append(request["namespace"])
        return {"hits": [], "total": 0}

    monkeypatch.setattr("thalweg.commands.search.ask", ask)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    search = ["search", "mill", "--json", "--home", str(tmp_path)]
    monkeypatch.setenv("THALWEG_NAMESPACE", "mine")
    for flags in ([], ["--namespace", "auto"]):
        CliRunner().invoke(cli, [*search, *flags])
    monkeypatch.delenv("THALWEG_NAMESPACE")
    CliRunner().invoke(cli, search)
    assert asked == ["mine", project_namespace(tmp_path), None]
