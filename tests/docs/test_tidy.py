"""The source stays in order: sizes, declarations, calls and words are held to what a reader can take in.

Each list of exceptions is a ratchet: what is on it may go, and nothing new is put there.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from importlib.metadata import packages_distributions

from tests.docs.source import PACKAGES, ROOT, modules, program

MOST_LINES = 420
MOST_LINES_OF_A_FUNCTION = 70
MOST_COLUMNS = 120
MOST_CHARACTERS_OF_A_SUMMARY = 100
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")

WIDE_LINES = {"streams": 0, "storage": 0, "processors": 0, "mcp_ingress": 0, "thalweg": 0, "tests": 0}
"""How many lines of a package may be wider. Migrations are left out: what is released is not edited."""

LONG_SUMMARIES = {"streams": 0, "storage": 0, "processors": 0, "mcp_ingress": 0, "thalweg": 0}
"""How many first sentences of docstrings may have more characters."""

LONG_FUNCTIONS: set[str] = set()

UNUSED = {
    "processors/valence/timers/age_patterns.py: AGE_PATTERNS",  # a timer, found by being there
    "streams/log/kafka_batches.py: timestamp_type",  # aiokafka reads it
}

FOUND_BY_BEING_THERE = re.compile(
    r"thalweg\.(__main__|commands\.\w+)|mcp_ingress\.toolsets\.\w+\.(resources\.)?\w+|streams\.event_types\.\w+"
    r"|processors\.\w+\.(reducers|stages|timers|kinds|record_formats|reports)(\.\w+)?"
)

CLASS_NAMES_USED_TWICE = {
    "Mapper": 7,  # one role in each format
}

CLOCK_AND_CHANCE = re.compile(
    r"(datetime\.)?datetime\.(now|utcnow|today)|time\.time(_ns)?|random\.\w+|(np|numpy)\.random(\.\w+)?"
    r"|uuid\.uuid[14]|uuid[14]|os\.urandom|secrets\.\w+"
)
PLACES_OF_CLOCK_AND_CHANCE = {
    "streams/clock.py": "the one clock",
    "streams/ids.py": "the one maker of ids",
    "processors/embedding/providers.py": "the jitter between two tries",
    "thalweg/bench/infer.py": "seeded edges",
    "thalweg/bench/recall_sets.py": "a seeded choice of examples",
    "thalweg/bench/scratch.py": "seeded texts",
    "thalweg/bench/search_store.py": "seeded vectors",
    "processors/context_graph/rules/hyperbolic.py": "a dream's walks take a seeded generator",
    "thalweg/dreams/cycle.py": "seeded by the dream's id",
    "processors/context_graph/rules/optimiser.py": "tries take a seeded generator",
    "processors/context_graph/rules/recalibration.py": "arms and tries take a seeded generator",
    "processors/context_graph/reducers/calibration.py": "seeded by the event's id",
    "thalweg/bench/rewording.py": "seeded choices of words",
    "thalweg/bench/themes.py": "a seeded order of sentences",
    "thalweg/bench/trust.py": "a seeded choice of questions",
    "thalweg/bench/week.py": "a seeded choice of what is told again, and when",
    "thalweg/process/http_door.py": "the bearer token is made here",
}

ENVIRONMENT = re.compile(r"os\.(environb?|getenv|putenv)")
PLACES_OF_THE_ENVIRONMENT = {
    "thalweg/environment.py": "the one place of the program",
    "thalweg/__main__.py": "a variable of NumPy's, set before it is imported",
    "streams/failpoints.py": "a test chooses where a process dies, also before it has read its settings",
    "streams/log/kafka_security.py": "a password goes to the clients of Kafka alone, never through the settings",
}

OTHER_DOCUMENTS = re.compile(
    r"\((talos|valence|cognitive memory|inner voice|context graph)(\.md)? \d+(\.\d+)?\)|\b(reliability|platform)\.md\b"
    r"|\b[Tt]he seeds?\b|\bseed's\b|\bseeds? prints?\b"
)
NAMES_OF_OTHER_DOCUMENTS: dict[str, int] = {}


def test_every_module_says_what_it_is_for_and_leaves_nothing_for_later() -> None:
    wrong = []
    for module in modules():
        if module.text.strip() and not re.match(r'r?"""', module.text):
            wrong.append(f"{module.name}: no docstring")
        if (lines := module.text.count("\n")) > MOST_LINES:
            wrong.append(f"{module.name}: {lines} lines, at most {MOST_LINES}")
        if LATER.search(module.text):
            wrong.append(f"{module.name}: something is left for later")
    assert len(modules()) > 400 and wrong == []


def test_a_function_fits_on_a_screen_or_two() -> None:
    long = {
        str(each)
        for module in modules()
        for each in module.functions()
        if lines_of(each.node) > MOST_LINES_OF_A_FUNCTION
    }
    assert long <= LONG_FUNCTIONS


def test_a_line_is_no_wider_than_120_characters_also_in_prose_and_sql() -> None:
    files = [*(module.path for module in modules()), *ROOT.glob("*/**/*.sql")]
    wide: dict[str, list[str]] = defaultdict(list)
    for path in files:
        name = path.relative_to(ROOT)
        if name.parts[0] in PACKAGES and not str(name).startswith("storage/migrations/"):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if len(line) > MOST_COLUMNS:
                    wide[name.parts[0]].append(f"{name}:{number}")
    over = {package: places for package, places in wide.items() if len(places) > WIDE_LINES[package]}
    assert over == {}


def test_the_first_sentence_of_a_docstring_is_short() -> None:
    long = Counter(
        module.package
        for module in program()
        for node in module.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if len(first_sentence(ast.get_docstring(node) or "")) > MOST_CHARACTERS_OF_A_SUMMARY
    )
    assert {package: count for package, count in long.items() if count > LONG_SUMMARIES[package]} == {}


def test_everything_that_the_program_declares_is_used_by_it() -> None:
    used = Counter(name for module in program() for name in module.names_used())
    ours = {each.name for module in program() for each in module.classes()}
    unused = set()
    for module in program():
        of_libraries = module.methods_of_libraries(ours)
        for each in (*module.functions(), *module.classes(), *module.constants()):
            if not used[each.name] and not each.name.startswith("__") and each.node not in of_libraries:
                unused.add(str(each))
    assert unused <= UNUSED


def test_every_module_is_imported_started_or_found_by_being_there() -> None:
    known = {name for module in program() for name in module.imported()}
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "pyproject.toml", ROOT / "ARCHITECTURE.md")]
    for text in (*pages, *(module.text for module in program())):
        known |= set(re.findall(r'"([\w.]+)"', text)) | set(re.findall(r"python -m ([\w.]+)", text))
    dead = [
        module.name
        for module in program()
        if module.dotted not in known
        and not module.name.endswith("__init__.py")
        and not FOUND_BY_BEING_THERE.fullmatch(module.dotted)
    ]
    assert dead == []


def test_no_class_name_means_two_things() -> None:
    count = Counter(each.name for module in program() for each in module.classes())
    twice = {name: times for name, times in count.items() if times > CLASS_NAMES_USED_TWICE.get(name, 1)}
    assert twice == {}


def test_clock_and_chance_have_one_place() -> None:
    assert places_that_name(CLOCK_AND_CHANCE) <= set(PLACES_OF_CLOCK_AND_CHANCE)


def test_the_environment_is_read_in_one_place() -> None:
    assert places_that_name(ENVIRONMENT) <= set(PLACES_OF_THE_ENVIRONMENT)


def test_no_sentence_refers_to_a_document_that_is_not_in_the_repository() -> None:
    pages = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name != "CHANGELOG.md"]
    texts = {module.name: module.text for module in modules() if not module.name.startswith("tests/docs/test_tidy")}
    texts |= {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages}
    found = Counter({name: count for name, text in texts.items() if (count := len(OTHER_DOCUMENTS.findall(text)))})
    assert found - Counter(NAMES_OF_OTHER_DOCUMENTS) == {}


def test_every_package_that_is_imported_is_one_that_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = (*project["dependencies"], *project["optional-dependencies"]["models"])
    declared = {canonical(found[0]) for one in required if (found := re.match(r"[\w.-]+", one))}
    packages = packages_distributions()
    wrong = {
        f"{module.name}: {name}"
        for module in program()
        for name in {dotted.partition(".")[0] for dotted in module.imported()}
        if name not in sys.stdlib_module_names
        and name not in PACKAGES
        and not declared & {canonical(one) for one in packages.get(name, ())}
    }
    assert len(declared) > 20 and wrong == set()


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def first_sentence(docstring: str) -> str:
    return re.split(r"(?<=[.!?])\s", docstring)[0]


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def places_that_name(pattern: re.Pattern[str]) -> set[str]:
    """Modules of the program that name what matches, as `module.name` or imported from its module."""
    found = set()
    for module in program():
        dotted = {ast.unparse(node) for node in module.nodes if isinstance(node, ast.Attribute)}
        if any(pattern.fullmatch(name) for name in (*dotted, *module.imported())):
            found.add(module.name)
    return found
