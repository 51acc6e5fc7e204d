"""What data sets look like: made of what is near the top, kept as it was checked."""

import base64
import io
import os
from pathlib import Path

import pytest
from PIL import Image
from tests.catalog.datasets.test_formats import batches

from pliant.catalog.datasets.formats.preview import make_preview
from pliant.catalog.datasets.messages import PREVIEW
from pliant.catalog.datasets.previews import DATASET_PREVIEW, DatasetPreviews
from pliant.core.preview import MAX_CELL, MAX_COLUMNS, MAX_IMAGES, MAX_ROWS, DatasetPreview, PreviewPart, Thumbnail


def picture(path: Path, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size).save(path)
    return path


def decoded(thumbnail: Thumbnail) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(thumbnail.png)), formats=["PNG"])


def test_every_class_is_seen_before_one_is_seen_again(tmp_path: Path) -> None:
    for label in ("cat", "dog", "owl"):
        for number in range(30):
            picture(tmp_path / "train" / label / f"{number:02}.png", (200, 100), "L" if label == "owl" else "RGB")
    (tmp_path / "train" / "dog" / "00.png").write_bytes(b"no picture")
    found = make_preview(tmp_path, {"train": "train"})
    (part,) = found.parts
    assert (found.kind, part.split, len(part.images)) == ("images", "train", MAX_IMAGES)
    assert [(one.label, one.name) for one in part.images[:4]] == [
        ("cat", "00.png"),
        ("owl", "00.png"),
        ("cat", "01.png"),
        ("dog", "01.png"),
    ]
    assert (part.images[0].width, part.images[0].height) == (200, 100)
    assert decoded(part.images[0]).size == (96, 48)
    assert decoded(part.images[1]).mode == "L"


def test_batches_in_an_archives_only_folder_are_seen(tmp_path: Path) -> None:
    made = batches(tmp_path)
    found = make_preview(tmp_path, {})
    assert [(part.split, len(part.images)) for part in found.parts] == [("train", 10), ("test", 10)]
    first, second = found.parts[1].images[:2]
    assert (first.label, second.label) == ("airplane", "automobile")
    number = int(first.name.rpartition("-")[2])
    pixels = bytes(made["test_batch"][number])
    assert decoded(first).tobytes() == bytes(pixels[i + plane] for i in range(1024) for plane in (0, 1024, 2048))


def test_a_table_shows_its_first_rows_and_a_text_its_first_lines(tmp_path: Path) -> None:
    rows = [[f"{row}-{column}" for column in range(60)] for row in range(100)]
    rows[1][0] = '"a ""long"" one, ' + "x" * 500 + '"'
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "t.csv").write_text("\n".join(",".join(row) for row in rows))
    (part,) = make_preview(tmp_path, {}).parts
    assert (part.split, len(part.columns), len(part.rows)) == ("all", MAX_COLUMNS, MAX_ROWS)
    assert part.columns[:2] == ("0-0", "0-1")
    assert part.rows[0][0] == ('a "long" one, ' + "x" * 500)[:MAX_CELL]
    (tmp_path / "inner" / "t.csv").rename(tmp_path / "inner" / "t.txt")
    (part,) = make_preview(tmp_path, {}).parts
    assert (part.columns, len(part.rows), part.rows[2]) == (("line",), MAX_ROWS, (",".join(rows[2])[:MAX_CELL],))


@pytest.mark.parametrize("content", [b"", b"\0\1\2", b"\xff\xfe\x00"])
def test_where_nothing_can_be_shown_it_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "x.png").write_bytes(content)
    found = make_preview(tmp_path, {})
    assert (found.kind, found.parts) == ("none", ())
    assert "nothing" not in found.reason
    assert "near its top" in found.reason


def test_what_is_broken_or_named_strangely_stops_nothing(tmp_path: Path) -> None:
    assert make_preview(tmp_path, {"train": "gone"}).reason.startswith("it cannot be looked at (FileNotFoundError)")
    os.rename(picture(tmp_path / "a" / "1.png"), os.path.join(os.fsencode(tmp_path), b"a", b"\xff.png"))
    (part,) = make_preview(tmp_path, {}).parts
    assert part.images[0].name == "?.png"


@pytest.fixture
def previews(tmp_path: Path) -> DatasetPreviews:
    (tmp_path / "work").mkdir()
    return DatasetPreviews(tmp_path)


def left(tmp_path: Path, png: bytes) -> DatasetPreview:
    image = Thumbnail(label="", name="x", width=1, height=1, png=base64.b64encode(png).decode())
    made = DatasetPreview(kind="images", parts=(PreviewPart(split="all", images=(image,)),))
    (tmp_path / "work" / PREVIEW).write_bytes(DATASET_PREVIEW.dump_json(made))
    return made


def test_a_preview_is_kept_until_it_is_discarded(previews: DatasetPreviews, tmp_path: Path) -> None:
    made = left(tmp_path, b"\x89PNG\r\n\x1a\n rest")
    previews.keep("one", tmp_path / "work")
    assert previews.get("one") == made
    previews.discard("one")
    assert previews.get("one").kind == "none"
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


@pytest.mark.parametrize("how", ["no picture", "link", "too long", "no JSON", "missing"])
def test_what_an_import_that_was_misled_leaves_is_not_kept(previews: DatasetPreviews, tmp_path: Path, how: str) -> None:
    left(tmp_path, b"\x89PNG\r\n\x1a\n rest")
    previews.keep("one", tmp_path / "work")
    place = tmp_path / "work" / PREVIEW
    match how:
        case "no picture":
            left(tmp_path, b"<svg onload='alert(1)'>")
        case "link":
            place.rename(tmp_path / "elsewhere")
            place.symlink_to(tmp_path / "elsewhere")
        case "too long":
            with place.open("ab") as file:
                file.truncate(1 << 40)
        case "no JSON":
            place.write_text("{")
        case "missing":
            place.unlink()
    previews.keep("one", tmp_path / "work")
    assert previews.get("one").kind == "none", "nor is what was there before"
