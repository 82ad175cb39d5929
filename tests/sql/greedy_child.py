"""A child program that takes as much memory or processor time as its request says."""

from __future__ import annotations

from typing import Any

from storage.sandbox import answer_one


def answer(request: dict[str, Any]) -> dict[str, Any]:
    while request.get("forever"):
        pass
    return {"size_mb": len(bytes(request["size_mb"] * 2**20)) // 2**20}


if __name__ == "__main__":
    answer_one(answer)
