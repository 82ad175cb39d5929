"""`thalweg doctor` checks the installation and its surroundings, and names a remedy for each fault.

It changes nothing in the data directory: what a check has to write goes to a temporary directory.
"""

from __future__ import annotations

from thalweg.doctor.checks import Diagnosis
from thalweg.doctor.installation import checks_of_installation
from thalweg.doctor.surroundings import checks_of_surroundings
from thalweg.settings import Settings


def examine(settings: Settings) -> list[Diagnosis]:
    """All diagnoses, in the order in which the checks depend on each other. Takes about two seconds."""
    return [check.run() for check in (*checks_of_installation(settings), *checks_of_surroundings(settings))]
