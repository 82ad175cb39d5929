"""Builds the spaces of the views that the setting `view_models` names.

What a space lacks is asked of the store, encoded, and added to its file; what serves the view until then does so until
nothing is missing. The file keeps what was added, so that a node that was killed resumes where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import duckdb
import numpy as np

from processors.context_graph.read.view_models import ViewInput, memory_labels, read_view_inputs
from processors.context_graph.rules.pictures import Picture
from processors.embedding.model import Embedder
from processors.embedding.view_model import ViewEncoder
from processors.frame.job import Job
from processors.memory.stages.embed import PROBE
from storage.search.vectors.model_vector import NOTHING, ModelVector
from storage.search.vectors.vector_file import text_digest
from storage.search.vectors.view_spaces import ViewBuild, ViewSpace
from streams.errors import EmbedderUnavailable, Refused, ThalwegError
from streams.failpoints import hit
from thalweg.process.running import Running
from thalweg.views.image_folder import ImageFolder

BATCH = 16
"""Texts that are encoded before it is looked whether somebody waits: a quarter of a second of a small model."""
CHECKED = 1024
"""Texts that are read at once when a file is opened."""
Result = TypeVar("Result")


class ViewFilling:
    """One for each node whose settings name models of views. `run` until cancelled."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._views = running.store.indexes.views
        self._wanted = running.settings.models_of_views
        self._views.building = {view: ViewBuild(name) for view, name in self._wanted.items()}
        self._images = ImageFolder(running.settings.image_root)
        self._open: dict[int, tuple[ViewEncoder, ViewSpace]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="views")
        self._job = Job("views", running.log, running.store.applied, self._look)
        self.run = self._job.run

    async def _look(self) -> None:
        """Fill every space. One whose model does not load leaves the others alone; its error is raised last."""
        failed: ThalwegError | None = None
        for view, name in self._wanted.items():
            try:
                await self._fill(view, *await self._opened(view, name))
            except ThalwegError as error:
                failed = error
                if (build := self._views.building.get(view)) is not None:
                    build.problem = error.message
        if failed is not None:
            raise failed

    async def _opened(self, view: int, name: str) -> tuple[ViewEncoder, ViewSpace]:
        """The model and the space, without what is of other texts. Raises EmbedderUnavailable."""
        if view not in self._open:
            encoder = ViewEncoder(view, await self._loaded(name))
            space = await asyncio.to_thread(self._views.open, view, encoder)
            labels = space.file.labels().tolist()
            for start in range(0, len(labels), CHECKED):
                some = labels[start : start + CHECKED]
                inputs = await self._read(read_view_inputs, some, pictures=encoder.reads_images, whole=False)
                stale = space.file.stale({one.label: one.digest for one in inputs})
                space.file.remove(stale)
                if space.images is not None:
                    space.images.add(sorted({one.label for one in inputs if one.picture} - set(stale)))
            space.file.forget_digests()
            await asyncio.to_thread(space.index, self._running.store.indexes.yield_to_callers)
            self._open[view] = encoder, space
        return self._open[view]

    async def _loaded(self, name: str) -> Embedder:
        embedder = await asyncio.to_thread(self._running.models.load, name)
        if embedder is None:
            raise Refused("`none` is not a model of a view; name one.")
        return embedder

    async def _fill(self, view: int, encoder: ViewEncoder, space: ViewSpace) -> None:
        """Encode what the space lacks; once that is nothing, it serves."""
        labels = await self._read(memory_labels)
        missing = np.setdiff1d(labels, space.file.labels())
        if (build := self._views.building.get(view)) is not None:
            build.problem, build.done, build.total = None, len(labels) - len(missing), len(labels)
        for start in range(0, len(missing), BATCH):
            await self._running.yield_to_writes()
            some = missing[start : start + BATCH].tolist()
            inputs = await self._read(read_view_inputs, some, pictures=encoder.reads_images)
            await asyncio.get_running_loop().run_in_executor(self._thread, self._add, encoder, space, inputs)
            hit("mid_view")
            if build is not None:
                build.done += len(inputs)
        if view not in self._views.serving:
            self._views.serve(view, space)

    def _add(self, encoder: ViewEncoder, space: ViewSpace, inputs: Sequence[ViewInput]) -> None:
        add_vectors(space, encoder, inputs, self._images)
        self._running.store.indexes.yield_to_callers()

    async def _read(self, query: Callable[..., Result], *arguments: object, **options: bool) -> Result:
        def read(cursor: duckdb.DuckDBPyConnection) -> Result:
            return query(cursor, *arguments, **options)

        return await self._running.store.reader.run(read)


def add_vectors(space: ViewSpace, encoder: ViewEncoder, inputs: Sequence[ViewInput], images: ImageFolder) -> None:
    """Encode and keep what the model makes of each. Raises EmbedderUnavailable.

    An image that cannot be read has the vector of its words, under their digest: the next start tries it again.
    """
    pixels = {one.label: _pixel_vector(encoder, one.picture, images) for one in inputs if one.picture is not None}
    by_words = [one for one in inputs if pixels.get(one.label) is None]
    words = zip(by_words, encode_all(encoder, [one.text for one in by_words]), strict=True)
    rows = [(one.label, text_digest(one.text), vector) for one, vector in words]
    rows += [(one.label, one.digest, vector) for one in inputs if (vector := pixels.get(one.label)) is not None]
    space.add(rows)
    if space.images is not None:
        space.images.add([label for label, vector in pixels.items() if vector is not None])
        space.images.by_words += sum(one.picture is not None for one in by_words)


def _pixel_vector(encoder: ViewEncoder, picture: Picture, images: ImageFolder) -> ModelVector | None:
    data = images.read(picture.path) if picture.path is not None else picture.data
    try:
        return encoder.encode_picture(data) if data else None
    except EmbedderUnavailable:  # of this image, or of all: then its words fail too
        return None


def encode_all(encoder: ViewEncoder, texts: Sequence[str]) -> list[ModelVector]:
    """Of each text its vectors; nothing of one on which the model fails and on others does not.

    Raises EmbedderUnavailable when it fails on every text.
    """
    try:
        return encoder.encode_stored(texts)
    except EmbedderUnavailable:
        encoder.encode_stored([PROBE])
        if len(texts) == 1:
            return [NOTHING]
        return [vector for text in texts for vector in encode_all(encoder, [text])]
