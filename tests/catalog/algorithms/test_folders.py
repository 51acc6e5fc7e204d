"""The code of algorithms: unpacked as strangers' code is, of one kind, and the same again after it was lost."""

import io
import stat
import tarfile
from pathlib import Path

import pytest
from tests.catalog.algorithms.world import OPTIMIZER, packed

from pliant.catalog.algorithms.folders import AlgorithmFolders, kind_of_code, top_of
from pliant.core.errors import InvalidInput, NotFound
from pliant.files import folder as file_folders


@pytest.fixture
def folders(tmp_path: Path) -> AlgorithmFolders:
    return AlgorithmFolders(tmp_path / "archives", tmp_path / "code")


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["optimizer.py"], "ibm"),
        (["sampler.py", "more/optimizer.py"], "optuna"),
        (["my-search/optimizer.py", "my-search/data.txt"], "ibm"),
    ],
)
def test_the_file_at_the_top_says_of_which_kind_it_is(
    names: list[str], kind: str, folders: AlgorithmFolders, tmp_path: Path
) -> None:
    with folders.draft(packed(dict.fromkeys(names, ""), tmp_path / "a.tar.gz")) as draft:
        assert kind_of_code(top_of(draft)) == kind


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["optimizer.py", "sampler.py"], "both optimizer.py and sampler.py are at its top, and only one can be"),
        (["search.py", "b.py"], "neither optimizer.py .* nor sampler.py .*, but 'b.py', 'search.py'; add one"),
        (["deep/down/optimizer.py"], "neither optimizer.py .* but 'down'; add one"),
    ],
)
def test_code_of_no_kind_or_of_two_is_refused(
    names: list[str], said: str, folders: AlgorithmFolders, tmp_path: Path
) -> None:
    with (
        folders.draft(packed(dict.fromkeys(names, ""), tmp_path / "a.tar.gz")) as draft,
        pytest.raises(InvalidInput, match=said),
    ):
        kind_of_code(top_of(draft))


def test_what_leads_out_of_the_archive_or_is_no_file_is_refused_and_nothing_is_left(
    folders: AlgorithmFolders, tmp_path: Path
) -> None:
    members = [tarfile.TarInfo("../outside.py"), tarfile.TarInfo("link"), tarfile.TarInfo("/etc/absolute")]
    members[1].type, members[1].linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO())

    with pytest.raises(InvalidInput) as caught, folders.draft(tmp_path / "bad.tar.gz"):
        pass
    assert len(caught.value.problems) == len(members)
    assert not (tmp_path / "outside.py").exists()
    assert list((tmp_path / "code").iterdir()) == []


def test_unpacked_code_is_read_only_and_is_made_again_from_its_archive(
    folders: AlgorithmFolders, tmp_path: Path
) -> None:
    archive = packed({"my-search/optimizer.py": OPTIMIZER}, tmp_path / "a.tar.gz")
    checksum = folders.keep(archive)
    archive.unlink()

    top = folders.unpacked(checksum)
    assert (top / "optimizer.py").read_text() == OPTIMIZER
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (top, top.parent, top / "optimizer.py")}
    assert modes == {file_folders.READ_ONLY_FOLDER, file_folders.READ_ONLY_FILE}
    file_folders.remove(tmp_path / "code")
    assert folders.unpacked(checksum) == top

    folders.sweep([])
    with pytest.raises(NotFound, match="install it again"):
        folders.unpacked(checksum)
