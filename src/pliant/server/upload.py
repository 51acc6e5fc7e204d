"""A multipart upload, taken apart while it arrives: the code goes to a file, the small part stays in memory.

Everything is limited while it streams. An upload over the limit is read on for a while and thrown away, so that
its sender gets to read the answer.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from email.message import Message
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from pliant.core.errors import InvalidInput, Problem, TooLarge

MAX_CODE_BYTES = 64 << 20
MAX_SUBMISSION_BYTES = 512 << 20
"""A notebook sends its model with its weights."""
MAX_FIELD_BYTES = 1 << 20
MAX_SEARCH_BYTES = 8 << 20
"""What a search begins with holds trials that are known."""
_MAX_WASTE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadForm:
    """Which parts a body may have."""

    file: str
    """The part that goes to a file."""
    fields: tuple[str, ...]
    """Those that stay in memory."""
    required: tuple[str, ...]
    only_first: bool = False
    """Of several files take the first and leave the others, instead of refusing them."""
    max_bytes: int | None = None
    """Of the file; None: what code may have."""
    max_field_bytes: int = MAX_FIELD_BYTES
    """Of each of those that stay in memory."""


_SUBMISSION = UploadForm(file="code", fields=("job",), required=("job", "code"), max_bytes=MAX_SUBMISSION_BYTES)
_SEARCH = replace(_SUBMISSION, max_field_bytes=MAX_SEARCH_BYTES)


@dataclass(slots=True, kw_only=True)
class _Parts:
    """What has arrived."""

    form: UploadForm
    out: BinaryIO
    fields: dict[str, bytearray] = field(default_factory=dict)
    name: str = ""
    header: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    num_code_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)
    too_large: str = ""

    def begin(self) -> None:
        self.name = ""

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self.header[0].extend(data[start:end])

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self.header[1].extend(data[start:end])

    def header_end(self) -> None:
        name, value = (part.decode("latin-1") for part in self.header)
        for part in self.header:
            part.clear()
        if name.lower() == "content-disposition":
            parsed = Message()
            parsed["content-disposition"] = value
            self.name = str(parsed.get_param("name", "", "content-disposition"))

    def headers_finished(self) -> None:
        form = self.form
        if self.name not in (form.file, *form.fields):
            known = " and ".join(f"`{name}`" for name in (*form.fields, form.file))
            self.problems.append(Problem(field=self.name, message=f"no such field; send {known}"))
        elif self.name in self.fields and self.name == form.file and form.only_first:
            self.name = ""
        elif self.name in self.fields:
            self.problems.append(Problem(field=self.name, message="it was sent twice; send it once"))
            self.name = ""
        else:
            self.fields[self.name] = bytearray()

    def data(self, data: bytes, start: int, end: int) -> None:
        if self.too_large or self.name not in self.fields:
            return
        if self.name == self.form.file:
            self.num_code_bytes += end - start
            limit = self.form.max_bytes or MAX_CODE_BYTES
            if self.num_code_bytes > limit:
                self.too_large = f"{self.name}: the archive is larger than {limit >> 20} MiB; leave data out of it"
            else:
                self.out.write(data[start:end])
            return
        self.fields[self.name].extend(data[start:end])
        if len(self.fields[self.name]) > self.form.max_field_bytes:
            self.too_large = f"{self.name}: it is longer than {self.form.max_field_bytes >> 20} MiB"


async def receive(content_type: str, stream: AsyncIterator[bytes], code: Path) -> bytes:
    """Write the part `code` of a submission to a file and return the part `job`.

    Raises:
        InvalidInput, TooLarge: as for `receive_form`.
    """
    return (await receive_form(content_type, stream, code, _SUBMISSION))["job"]


async def receive_search(content_type: str, stream: AsyncIterator[bytes], code: Path) -> bytes:
    """Do as `receive` for a search, whose part `job` may be longer.

    Raises:
        InvalidInput, TooLarge: as for `receive_form`.
    """
    return (await receive_form(content_type, stream, code, _SEARCH))["job"]


async def receive_form(
    content_type: str, stream: AsyncIterator[bytes], file: Path, form: UploadForm
) -> Mapping[str, bytes]:
    """Write one part of a multipart body to a file and return the others; that of the file is empty if it was sent.

    Raises:
        InvalidInput: it is no such body, or a part is missing, there twice, or unknown.
        TooLarge: a part is over its limit.
    """
    with ExitStack() as stack:
        parts = _Parts(form=form, out=stack.enter_context(file.open("wb")))
        parser = _parser(content_type, parts)
        num_bytes = 0
        try:
            async for chunk in stream:
                num_bytes += len(chunk)
                if num_bytes > _MAX_WASTE_BYTES + (form.max_bytes or 0):
                    break
                parser.write(chunk)
            if not parts.too_large:
                parser.finalize()
        except FormParserError as error:
            raise InvalidInput.at("", f"the body is not multipart/form-data ({error})") from error
    if parts.too_large:
        raise TooLarge(parts.too_large)
    absent = [name for name in form.required if name not in parts.fields]
    missing = [Problem(field=name, message="it is missing; send it") for name in absent]
    if problems := [*parts.problems, *missing]:
        raise InvalidInput(*problems)
    return {name: bytes(value) for name, value in parts.fields.items()}


def _parser(content_type: str, parts: _Parts) -> MultipartParser:
    parsed = Message()
    parsed["content-type"] = content_type
    boundary = parsed.get_boundary()
    if parsed.get_content_type() != "multipart/form-data" or boundary is None:
        raise InvalidInput.at("", f"the body is {content_type or 'of no type'!r}; send multipart/form-data")
    return MultipartParser(
        boundary.encode("latin-1", "replace"),
        {
            "on_part_begin": parts.begin,
            "on_header_field": parts.header_field,
            "on_header_value": parts.header_value,
            "on_header_end": parts.header_end,
            "on_headers_finished": parts.headers_finished,
            "on_part_data": parts.data,
        },
    )
