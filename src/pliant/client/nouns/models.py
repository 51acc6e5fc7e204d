"""Templates, models and trainings: one method per route, bodies in and answers out."""

import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pliant.api.models import (
    ModelPage,
    ModelPatch,
    ModelRequest,
    ModelView,
    TemplatePage,
    TemplateRequest,
    TemplateView,
    TrainingPage,
    TrainingRequest,
    TrainingView,
)
from pliant.client.folders.pack import pack
from pliant.client.folders.result import fetch_folder
from pliant.client.http.connection import Params, if_match, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.nouns.noun import NounClient

_TIMEOUT_S: Final = 300.0
"""Of what sends or fetches files."""
_PAGE: Final = 1000

_TEMPLATE_PAGE: Final = LazyAdapter(TemplatePage)
_MODEL_PAGE: Final = LazyAdapter(ModelPage)
_TRAINING: Final = LazyAdapter(TrainingView)
_TRAINING_PAGE: Final = LazyAdapter(TrainingPage)


class TemplateClient(NounClient[TemplateView]):
    """Code that models are made from."""

    _root = "/templates"
    _view = LazyAdapter(TemplateView)

    def list(self, *, after: str = "", limit: int = _PAGE) -> TemplatePage:
        """Return templates in the order of their names."""
        return self._connection.get(_TEMPLATE_PAGE, self._root, {"after": after, "limit": limit})

    def add(self, folder: Path, request: TemplateRequest) -> TemplateView:
        """Pack a folder, upload it and keep it as a template."""
        return self._upload("POST", self._root, folder, request, None)

    def replace(self, folder: Path, request: TemplateRequest, *, revision: int | None = None) -> TemplateView:
        """Replace a template with what is in a folder.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._upload("PUT", self._path(request.name), folder, request, revision)

    def files(self, name: str, to: Path) -> Path:
        """Fetch the files of a template into the new or empty folder `to`."""
        return fetch_folder(self._connection, f"{self._path(name)}/files", to)

    def _upload(
        self, method: str, path: str, folder: Path, request: TemplateRequest, revision: int | None
    ) -> TemplateView:
        with tempfile.TemporaryFile() as archive:
            pack(folder, archive)
            archive.seek(0)
            response = self._connection.call(
                method,
                path,
                data={"template": request.model_dump_json(exclude_unset=True)},
                files={"code": ("code.tar.gz", archive, "application/gzip")},
                headers=if_match(revision),
                timeout_s=max(_TIMEOUT_S, self._connection.timeout_s),
            )
        return parse(self._view, response)


class ModelClient(NounClient[ModelView]):
    """Models and their trainings, which stay readable when a model is removed."""

    _root = "/models"
    _view = LazyAdapter(ModelView)

    def list(self, *, after: str = "", limit: int = _PAGE) -> ModelPage:
        """Return models in the order of their names."""
        return self._connection.get(_MODEL_PAGE, self._root, {"after": after, "limit": limit})

    def add(self, request: ModelRequest) -> ModelView:
        """Make a model of a template."""
        return self._send("POST", self._root, request)

    def change(self, name: str, patch: ModelPatch, *, revision: int | None = None) -> ModelView:
        """Change what later trainings run with.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._send("PATCH", self._path(name), patch, revision)

    def train(self, name: str, request: TrainingRequest, *, weights: Path | None = None) -> TrainingView:
        """Start a training; `weights` is a file here with a `state_dict` to start from."""
        path = f"{self._path(name)}/trainings"
        if weights is None:
            return parse(_TRAINING, self._connection.send("POST", path, request))
        with weights.open("rb") as file:
            response = self._connection.call(
                "POST",
                path,
                data={"training": request.model_dump_json(exclude_unset=True)},
                files={"weights": (weights.name, file, "application/octet-stream")},
                timeout_s=max(_TIMEOUT_S, self._connection.timeout_s),
            )
        return parse(_TRAINING, response)

    def trainings(self, name: str, *, after: str = "", limit: int = _PAGE) -> TrainingPage:
        """Return the trainings of a model in the order of their names."""
        params: Params = {"after": after, "limit": limit}
        return self._connection.get(_TRAINING_PAGE, f"{self._path(name)}/trainings", params)

    def training(self, name: str, training: str) -> TrainingView:
        """Return a training."""
        return self._connection.get(_TRAINING, self._training(name, training))

    def stop(self, name: str, training: str) -> TrainingView:
        """End a training at its next step boundary."""
        return parse(_TRAINING, self._connection.call("POST", f"{self._training(name, training)}/stop"))

    def forget(self, name: str, training: str) -> None:
        """Forget a training that does not run."""
        self._connection.call("DELETE", self._training(name, training))

    def weights(self, name: str, training: str, to: Path) -> Path:
        """Fetch the trained weights into the file `to`, which is whole then or not there."""
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as folder:
            draft = Path(folder) / "weights"
            path = f"{self._training(name, training)}/weights"
            with draft.open("wb") as out, self._connection.stream(path, {}, timeout_s=_TIMEOUT_S) as chunks:
                out.writelines(chunks)
            draft.replace(to)
        return to

    def code(self, name: str, training: str, to: Path) -> Path:
        """Fetch the code and the parameters that a training ran into the new or empty folder `to`."""
        return fetch_folder(self._connection, f"{self._training(name, training)}/code", to)

    def _training(self, name: str, training: str) -> str:
        return f"{self._path(name)}/trainings/{quote(training, safe='')}"
