from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bedplate.engines.postgresql.builds import SourceUnavailable, fetch_official_tarball, newest_release
from bedplate.engines.postgresql.versions import parse_version

LISTING = """<a href="../">../</a><a href="v17.11/">v17.11/</a> <a href="v18.9/">v18.9/</a>
<a href='/pub/source/v18.10/'>v18.10/</a> <a href="v19beta1/">v19beta1/</a> <a href="v9.6.24/">x</a>"""


def ignore(text: str) -> None:
    del text


def site(folder: Path, version: str, body: bytes, promised: str) -> str:
    """A site on disk: urllib reads file: addresses, so nothing has to listen."""
    release = folder / f"v{version}"
    release.mkdir()
    name = f"postgresql-{version}.tar.bz2"
    (release / name).write_bytes(body)
    (release / f"{name}.sha256").write_text(f"{promised}  {name}\n", encoding="ascii")
    return folder.as_uri()


def test_newest_minor_is_the_greatest_number_not_the_last_word() -> None:
    assert "18.10" == newest_release(LISTING, parse_version("18"))
    assert "17.11" == newest_release(LISTING, parse_version("17"))


def test_listing_without_the_major_is_a_reason() -> None:
    with pytest.raises(SourceUnavailable, match="has no 15"):
        newest_release(LISTING, parse_version("15"))


def test_tarball_comes_with_the_promise_of_its_checksum_file(tmp_path: Path) -> None:
    body = b"source" * 1000
    promised = hashlib.sha256(body).hexdigest()
    address = site(tmp_path, "18.6", body, promised)
    target = tmp_path / "target"
    target.mkdir()
    fetched = fetch_official_tarball(
        parse_version("18.6"), directory=target, progress=ignore, base_url=address
    )
    assert body == fetched.tarball.read_bytes()
    assert ("18.6", promised) == (fetched.version, fetched.promised_sha256)
    assert f"{address}/v18.6/postgresql-18.6.tar.bz2" == fetched.detail


def test_checksum_file_without_a_checksum_is_a_reason(tmp_path: Path) -> None:
    address = site(tmp_path, "18.6", b"", "<html>not found</html>")
    with pytest.raises(SourceUnavailable, match="holds no checksum"):
        fetch_official_tarball(parse_version("18.6"), directory=tmp_path, progress=ignore, base_url=address)


def test_site_out_of_reach_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"absent.*No such file"):
        fetch_official_tarball(
            parse_version("18"), directory=tmp_path, progress=ignore, base_url=(tmp_path / "absent").as_uri()
        )
