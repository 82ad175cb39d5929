"""E2, E3, E4: how near two memories are in time, in the course of hours and days, and in order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

HOUR, DAY = 3600.0, 86_400.0
SCALES = (HOUR, DAY, 7 * DAY, 30 * DAY)
"""Half-lives of E2, seconds."""
PERIODS = (HOUR, DAY, 7 * DAY, 30.44 * DAY, 365.25 * DAY)
HARMONICS = (1, 2, 3)
MAX_AGE = 365.25 * DAY
_WAVES = 32
_LOG_STEP = 8.0
"""Doubling the position in the log counts as far as so many places in a session."""
_SQUARED_LENGTH = len(PERIODS) * sum(harmonic**-2 for harmonic in HARMONICS)
"""Of a row of `periodic` before it has length 1."""
_RATES = 1000.0 ** -(np.arange(_WAVES) / _WAVES)


@dataclass(frozen=True, slots=True)
class Moment:
    """When and where a memory was stored; what is not known is None.

    `at`: seconds since 1970. `session`, and the `place` in it from 0. `position`: in the log, from 0.
    """

    at: float
    session: str | None = None
    place: int | None = None
    position: int | None = None


def decay(age: np.ndarray) -> np.ndarray:
    """(n,) seconds -> (n, 4): what is left after them at each half-life."""
    bounded = np.clip(np.nan_to_num(age, nan=MAX_AGE), 0, MAX_AGE)
    left: np.ndarray = np.exp2(-bounded[:, None] / np.array(SCALES))
    return left


def recent_alignments(query: Moment, at: np.ndarray) -> np.ndarray:
    """E2: 1 at the same time, .97 an hour apart, .69 seven days, towards .5. `at`: (n,) seconds."""
    left = decay(np.abs(at - query.at))
    aligned: np.ndarray = left.sum(1) / (len(SCALES) ** 0.5 * np.linalg.norm(left, axis=1))
    return aligned


def periodic(at: np.ndarray) -> np.ndarray:
    """(n,) seconds -> (n, 30) unit rows: of each period three harmonics, the h-th times 1/h."""
    harmonics = np.array(HARMONICS, np.float64)
    phases = 2 * np.pi * at[:, None, None] / np.array(PERIODS)[:, None] * harmonics
    waves = np.stack([np.sin(phases), np.cos(phases)], -1) / harmonics[:, None]
    rows: np.ndarray = waves.reshape(len(at), -1) / math.sqrt(len(PERIODS) * float((harmonics**-2).sum()))
    return rows


def periodic_alignments(query: Moment, at: np.ndarray) -> np.ndarray:
    """E3: near 1 at the same hour of another day, and more so on the same day of another week.

    The product of two rows of `periodic`, by the difference of their phases: a cosine of each period is enough.
    """
    once = np.cos(2 * np.pi * (at - query.at)[:, None] / np.array(PERIODS))
    twice = 2 * once * once - 1
    thrice = (2 * twice - 1) * once
    aligned: np.ndarray = (once + twice / 4 + thrice / 9).sum(1) / _SQUARED_LENGTH
    return aligned


def order(places: np.ndarray) -> np.ndarray:
    """(n,) places -> (n, 64) unit rows, sines and cosines of 32 wavelengths; neighbours are near."""
    phases = places[:, None] * _RATES
    rows: np.ndarray = np.concatenate([np.sin(phases), np.cos(phases)], 1) / math.sqrt(_WAVES)
    return rows


def log_place(position: np.ndarray) -> np.ndarray:
    """The position in the log as a place: each doubling is 8 places."""
    place: np.ndarray = _LOG_STEP * np.log2(1 + np.maximum(position, 0))
    return place


def positional_alignments(query: Moment, moments: list[Moment]) -> np.ndarray:
    """E4: half by the position in the log, half by the place in a common session; NaN without any."""
    positions = np.array([math.nan if one.position is None else one.position for one in moments], np.float64)
    places = np.array(
        [
            math.nan if one.place is None or one.session is None or one.session != query.session else one.place
            for one in moments
        ],
        np.float64,
    )
    of_log = _near(log_place(_number(query.position)), log_place(positions))
    of_session = _near(_number(query.place), places)
    both = np.stack([of_log, of_session])
    known = ~np.isnan(both)
    aligned: np.ndarray = np.where(known, both, 0).sum(0) / np.where(known.any(0), known.sum(0), math.nan)
    return aligned


def _near(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The products of rows of `order`, by the differences of their phases; NaN where a place is not known."""
    near: np.ndarray = np.cos((others - one)[:, None] * _RATES).sum(1) / _WAVES
    return near


def _number(value: int | None) -> np.ndarray:
    return np.array([math.nan if value is None else value], np.float64)
