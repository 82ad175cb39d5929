"""The namespace of a project, by its directory: what `--namespace auto` stands for. It imports next to nothing.

The pump, hooks and imports ask here, so that what one writes in a project the others find.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from thalweg.environment import process_environment

AUTO = "auto"
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
"""Claude Code names its project's directory here, wherever its session has moved to."""
MAX_NAME = 100
MAX_GIT_FILE = 4096


def namespace_of(name: str) -> str:
    """The name itself, or for `auto` that of the project in which this process runs."""
    if name != AUTO:
        return name
    return project_namespace(Path(process_environment().get(PROJECT_VARIABLE) or os.getcwd()))


def project_namespace(directory: Path) -> str:
    """`<folder>-<8 hex digits of its path>`, of the directory's repository, else of the directory itself."""
    project = _project(Path(os.path.realpath(directory)))
    name = "".join(sign if sign.isprintable() and sign != "/" else "-" for sign in project.name or "root")
    digest = hashlib.blake2b(os.fsencode(project), digest_size=4).hexdigest()
    return f"{name.strip()[:MAX_NAME]}-{digest}"


def _project(directory: Path) -> Path:
    """The nearest directory with a `.git`; of a worktree the repository's own.

    So all worktrees of a repository share a memory.
    """
    for place in (directory, *directory.parents):
        git = place / ".git"
        if git.is_dir():
            return place
        if git.is_file():
            return _of_worktree(git) or place
    return directory


def _of_worktree(git: Path) -> Path | None:
    """The repository of a worktree, by its `.git` file; None for a submodule's, and for a damaged one."""
    try:
        with git.open(encoding="utf-8", errors="surrogateescape") as file:
            line = file.read(MAX_GIT_FILE).strip()
        own = git.parent / line.removeprefix("gitdir:").strip()
        common = Path(os.path.realpath(own / (own / "commondir").read_text(errors="surrogateescape").strip()))
    except (OSError, ValueError):
        return None
    return common.parent if common.name == ".git" else common
