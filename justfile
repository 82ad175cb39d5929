# The habits of this project. `just` is optional: each line works by itself.

default: format lint types test

format:
    python3 dev.py run ruff format .
    python3 dev.py run ruff check --fix .

lint:
    python3 dev.py run ruff check .
    python3 dev.py run lint-imports

types:
    python3 dev.py run mypy

# the quick suite: no Java, no kills
test *ARGS:
    python3 dev.py test {{ARGS}}

# the property tests again, with many examples
thorough:
    THALWEG_THOROUGH=1 python3 dev.py test -n 2 -m "hypothesis and not kafka and not crash and not process and not conformance and not models"

# a real Kafka broker from Maven jars on port 9092
kafka:
    python3 dev.py run python -m tests.kafka.rig up

# the node and the pump as processes of their own
test-process:
    python3 dev.py test -n 2 --dist worksteal -m "process and not kafka and not crash"

# the quick suite under coverage: fails when it leaves too many branches out
coverage:
    python3 dev.py coverage

test-kafka:
    THALWEG_REQUIRE_KAFKA=1 python3 dev.py test -m "kafka and not crash"

# named models through sentence-transformers, in an environment of their own (torch: 4 GB)
models *ARGS:
    python3 dev.py models {{ARGS}}

# each of a kept list of one-line faults against the tests that should see it; prints those that survive
mutants *WORDS:
    python3 dev.py run python -m tests.mutants {{WORDS}}

conformance:
    THALWEG_REQUIRE_CONFORMANCE=1 python3 dev.py test -m conformance

crash:
    python3 dev.py test -m "crash and not kafka"

# the power fails after each of 200 writes: what was acknowledged is on disk
power-cut:
    python3 dev.py test -n 0 tests/crash/test_power_cut.py

crash-kafka:
    THALWEG_REQUIRE_KAFKA=1 python3 dev.py test -m "crash and kafka"

bench:
    python3 dev.py run thalweg bench write
    python3 dev.py run thalweg bench ingest
    python3 dev.py run thalweg bench search

docs:
    python3 dev.py run python -m streams.asyncapi
    python3 dev.py run python -m tests.docs.pages

# rewrite the tools' contract snapshots
snap:
    THALWEG_SNAP=1 python3 dev.py test tests/contract

lock:
    python3 dev.py lock
