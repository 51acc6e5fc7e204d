"""What an import makes of pictures, of CIFAR-10 batches, of tables and of folders; and what it refuses."""

import io
import pickle
import random
import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pliant.catalog.datasets.formats import cifar as cifar
from pliant.catalog.datasets.formats.parts import RowDealer, counts, deal
from pliant.catalog.datasets.importer import run_import
from pliant.catalog.datasets.messages import ImportResult, ImportSpec
from pliant.core.dataset import Column, CsvRule, ImageRule, ImportProgress, Kind, SplitRule
from pliant.core.errors import InvalidInput, TooLarge

RULE = SplitRule(validation_percent=20, test_percent=10, seed=7)


Run = Callable[..., ImportResult]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def imported(tmp_path: Path) -> Run:
    reports: list[ImportProgress] = []

    def run(
        kind: Kind,
        source: Path,
        *,
        split: SplitRule = RULE,
        images: ImageRule | None = None,
        csv: CsvRule | None = None,
        max_bytes: int = 1 << 30,
    ) -> ImportResult:
        (tmp_path / "work").mkdir()
        spec = ImportSpec(
            kind=kind,
            source=str(source),
            data_root=str(tmp_path.resolve()),
            num_bytes=None,
            sha256="",
            work=str(tmp_path / "work"),
            max_bytes=max_bytes,
            max_files=10_000,
            split=split,
            images=images or ImageRule(),
            csv=csv or CsvRule(),
        )
        return run_import(spec, reports.append)

    return run


def picture(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (4, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


@given(num=st.integers(0, 500), validation=st.floats(0, 99), test=st.floats(0, 99), seed=st.integers(0, 9))
def test_every_sample_goes_to_one_part_in_the_proportions_that_were_asked_for(
    num: int, validation: float, test: float, seed: int
) -> None:
    if validation + test >= 100:
        return
    rule = SplitRule(validation_percent=validation, test_percent=test, seed=seed)
    names = [f"{number:03}" for number in range(num)]
    dealt = deal(names, rule, label="x")
    assert sorted(name for part in dealt.values() for name in part) == names
    assert {part: len(found) for part, found in dealt.items()} == counts(num, rule)
    assert dealt["train"] or not num
    if len(dealt["train"]) > 1:
        assert abs(len(dealt["validation"]) - num * validation / 100) <= 0.5
    random.Random(1).shuffle(names)
    assert deal(names, rule, label="x") == dealt
    rows = RowDealer(num, rule)
    assert Counter(rows.deal() for _ in range(num)) == Counter({p: n for p, n in counts(num, rule).items() if n})


def test_another_seed_deals_otherwise() -> None:
    names = [str(number) for number in range(50)]
    assert deal(names, RULE, label="x") != deal(names, SplitRule(seed=8), label="x")
    assert deal(names, RULE, label="x") != deal(names, RULE, label="y")


def test_pictures_in_classes_are_dealt_out_made_alike_and_measured(source: Path, tmp_path: Path, imported: Run) -> None:
    for number in range(10):
        picture(source / "cats" / f"{number}.jpg", (250, 0, 0), (8, 4))
        picture(source / "dogs" / "in" / f"{number}.png", (10, 0, 255), (4, 8))
    picture(source / "cats" / "0.png", (250, 0, 0))
    (source / "cats" / ".DS_Store").write_bytes(b"x")
    done = imported("images", source, images=ImageRule(width=6, height=6))
    content = done.content
    out = tmp_path / "work" / "data"
    assert content.labels == {"cats": 11, "dogs": 10}
    assert content.splits == {"train": 15, "validation": 4, "test": 2}
    assert content.image_size == (6, 6)
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.png"))
    assert len(files) == len({name.partition("/")[2] for name in files}) == 21
    assert content.num_files == 21
    pixels = np.stack([np.asarray(Image.open(path)) for path in sorted((out / "train").rglob("*.png"))]) / 255
    assert content.mean == pytest.approx(pixels.mean((0, 1, 2)))
    assert content.deviation == pytest.approx(pixels.std((0, 1, 2)))
    assert (out / "dataset.json").is_file()
    assert stat.S_IMODE((out / "train" / "cats").stat().st_mode) == 0o555
    assert stat.S_IMODE((out / files[0]).stat().st_mode) == 0o444


def test_pictures_that_come_with_parts_keep_them(source: Path, imported: Run) -> None:
    for number in range(10):
        picture(source / "all" / "Train" / "a" / f"{number}.png", (1, 2, 3))
        picture(source / "all" / "test" / "a" / f"{number}.png", (1, 2, 3))
    done = imported("images", source)
    assert done.content.splits == {"train": 8, "validation": 2, "test": 10}


@pytest.mark.parametrize(("resizing", "corner"), [("squash", (200, 0, 0)), ("crop", (200, 0, 0)), ("fill", (0, 0, 0))])
def test_each_way_of_resizing(
    source: Path, tmp_path: Path, imported: Run, resizing: str, corner: tuple[int, ...]
) -> None:
    picture(source / "a" / "wide.png", (200, 0, 0), (40, 10))
    rule = ImageRule(width=8, height=8, resizing=resizing)  # type: ignore[arg-type]
    imported("images", source, images=rule)
    image = Image.open(tmp_path / "work" / "data" / "train" / "a" / "wide.png")
    assert (image.size, image.getpixel((0, 0))) == ((8, 8), corner)


def test_all_pictures_that_cannot_be_read_are_named(source: Path, imported: Run) -> None:
    (source / "a").mkdir()
    Image.effect_noise((64, 64), 50).save(source / "a" / "good.png")
    (source / "a" / "text.png").write_bytes(b"no picture")
    (source / "a" / "half.png").write_bytes((source / "a" / "good.png").read_bytes()[:600])
    with pytest.raises(InvalidInput) as refused:
        imported("images", source)
    named = [problem.message.partition(" cannot be read")[0] for problem in refused.value.problems]
    assert sorted(named) == ["a/half.png", "a/text.png"]


def test_a_picture_of_too_many_pixels_is_refused(source: Path, imported: Run) -> None:
    (source / "a").mkdir()
    Image.new("1", (20_000, 4_000)).save(source / "a" / "bomb.png")
    with pytest.raises(InvalidInput, match="20000 × 4000 pixels"):
        imported("images", source)


def batch(numbers: range, protocol: int = 2) -> tuple[bytes, np.ndarray]:
    pixels = np.random.default_rng(1).integers(0, 256, (len(numbers), cifar.IMAGE_BYTES), dtype=np.uint8)
    labels = [number % 2 for number in numbers]
    names = [f"{number}.png".encode() for number in numbers]
    content = {b"batch_label": b"x", b"labels": labels, b"data": pixels, b"filenames": names}
    return pickle.dumps(content, protocol=protocol), pixels


def batches(folder: Path) -> dict[str, np.ndarray]:
    place = folder / "cifar-10-batches-py"
    place.mkdir()
    meta = {b"label_names": [b"airplane", b"automobile"], b"num_cases_per_batch": 10, b"num_vis": 3072}
    (place / "batches.meta").write_bytes(pickle.dumps(meta, protocol=2))
    made = {}
    for name in (*cifar.TRAINING, cifar.TEST):
        content, made[name] = batch(range(10))
        (place / name).write_bytes(content)
    return made


def test_cifar_batches_become_pictures(source: Path, tmp_path: Path, imported: Run) -> None:
    made = batches(source)
    done = imported("images", source)
    assert done.content.labels == {"airplane": 30, "automobile": 30}
    assert done.content.splits == {"train": 40, "validation": 10, "test": 10}
    image = Image.open(tmp_path / "work" / "data" / "test" / "automobile" / "test_batch-00003.png")
    assert (np.asarray(image).transpose(2, 0, 1).ravel() == made["test_batch"][3]).all()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_batches_of_every_protocol_are_read(tmp_path: Path, protocol: int) -> None:
    content, pixels = batch(range(3), protocol)
    (tmp_path / "data_batch_1").write_bytes(content)
    found = cifar.read_batch(tmp_path / "data_batch_1", 2)
    assert (found.labels, found.pixels) == ((0, 1, 0), pixels.tobytes())


class Hostile:
    """What runs a program when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_hostile_pickle_runs_nothing(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({b"data": Hostile(tmp_path / "made")}, protocol=protocol))
    with pytest.raises(InvalidInput, match="open"):
        cifar.read(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'/etc/passwd'\ntR.",
        b"cnumpy.core.multiarray\nfromfile\n.",
        b"(i__main__\nX\n.",
        b"\x80\x02]r\xff\xff\xff\x7f.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02cnumpy\ndtype\n(U\x02O8K\x00K\x01tR.",
        b"\x80\x02ccopyreg\n_reconstructor\n.",
        b"\x80\x02Pabc\n.",
        b"\x80\x05\x96\x00\x00\x00\x00\x00\x00\x00\x40.",
        b"\x80\x02cnumpy\nndarray\n)R}X\x01\x00\x00\x00aK\x01sb.",
        b"",
        b"no pickle",
        pickle.dumps([1]),
        pickle.dumps({b"data": np.zeros((2, 3), dtype=object)}, protocol=2),
        pickle.dumps({b"data": np.zeros((2, 3))}, protocol=2),
    ],
)
def test_pickles_that_are_no_batches_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="give the CIFAR-10 batches"):
        cifar.read_batch(path, 2)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # Python's own, of texts in them
@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    try:
        cifar._check_operations(content)
        cifar._Reader(io.BytesIO(content), encoding="bytes").load()
    except cifar._BROKEN:
        return


def test_labels_that_cannot_be_folders_are_refused(tmp_path: Path) -> None:
    for names in ([b"../x"], [b".."], [b""], ["a\nb"], [b"a", b"a"], [], b"a"):
        (tmp_path / cifar.META).write_bytes(pickle.dumps({b"label_names": names}, protocol=2))
        with pytest.raises(InvalidInput):
            cifar.read_labels(tmp_path)


def test_a_table_is_described_and_dealt_out(source: Path, tmp_path: Path, imported: Run) -> None:
    lines = ["\ufeffid;price; note;flag;none"]
    lines += [f'{i};{"" if i == 3 else i / 4};"a;""b"" {i}";{"yes" if i % 2 else "no"};' for i in range(20)]
    (source / "t.csv").write_text("\r\n".join(lines))
    done = imported("csv", source / "t.csv")
    assert done.content.columns == (
        Column(name="id", kind="integer", num_missing=0, minimum=0, maximum=19),
        Column(name="price", kind="number", num_missing=1, minimum=0, maximum=4.75),
        Column(name="note", kind="text", num_missing=0),
        Column(name="flag", kind="boolean", num_missing=0),
        Column(name="none", kind="empty", num_missing=20),
    )
    assert done.content.splits == {"train": 14, "validation": 4, "test": 2}
    assert done.content.parts["validation"] == "validation.csv"
    out = tmp_path / "work" / "data"
    texts = {part: (out / f"{part}.csv").read_text().splitlines() for part in ("train", "validation", "test")}
    assert {text[0] for text in texts.values()} == {"id,price,note,flag,none"}
    assert '5,1.25,"a;""b"" 5",yes,' in [line for text in texts.values() for line in text]
    ids = sorted(int(line.split(",")[0]) for text in texts.values() for line in text[1:])
    assert ids == list(range(20))


def test_a_table_without_header(source: Path, imported: Run) -> None:
    (source / "t.csv").write_text("1\n2\n3\n")
    done = imported("csv", source, csv=CsvRule(header=False), split=SplitRule(validation_percent=0, test_percent=0))
    assert [column.name for column in done.content.columns] == ["column_1"]
    assert done.content.splits == {"train": 3}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a,b\n1,2\n3\n4,5,6\n", "line 3 has 1 values, not 2"),
        (b"a,b\n1,\xff\n", "not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        (b"a,b\n1,\x00\n", "NUL"),
        (b"a,a\n1,2\n", "more than once"),
        (b"a,b\n", "no rows"),
        (b"", "empty"),
        (b'a,b\n1,"2\n', "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(source: Path, imported: Run, content: bytes, why: str) -> None:
    (source / "t.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=why):
        imported("csv", source / "t.csv", csv=CsvRule(delimiter=","))


def test_a_folder_with_several_tables_is_refused(source: Path, imported: Run) -> None:
    (source / "a.csv").write_text("a\n1\n")
    (source / "b.CSV").write_text("a\n1\n")
    with pytest.raises(InvalidInput, match=r"this holds 2 \(a.csv, b.CSV\)"):
        imported("csv", source)


def test_an_archive_of_the_data_root_is_unpacked_within_its_limits(source: Path, tmp_path: Path, imported: Run) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a/test/x", bytes(2000))
    with pytest.raises(TooLarge):
        imported("any", tmp_path / "a.zip", max_bytes=1000)
    assert [path for path in (tmp_path / "work").rglob("*") if path.is_file()] == []
    shutil.rmtree(tmp_path / "work")
    done = imported("any", tmp_path / "a.zip")
    assert (done.in_place, done.content.parts) == (False, {"test": "a/test"})
