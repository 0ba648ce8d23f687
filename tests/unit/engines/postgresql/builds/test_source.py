from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql import builds
from bedplate.engines.postgresql import builds as source_module
from bedplate.engines.postgresql.builds import Fetched, Source, SourceUnavailable, ensure_source
from bedplate.engines.postgresql.versions import AskedVersion, parse_version, release_key
from bedplate.errors import OutputNotUnderstood, PlanError, RequirementMissing
from bedplate.host.files import sha256_of

if TYPE_CHECKING:
    from tests.support.tools.scripted_commands import ScriptedCommands

MakeTarball = Callable[..., Path]


def ignore(text: str) -> None:
    del text


class Ways:
    """Stands for the distribution and the official site; remembers which of them was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.distribution: Fetched | None = None
        self.official: Fetched | None = None
        monkeypatch.setattr(source_module, "read_apt_system", lambda _: None)
        monkeypatch.setattr(source_module, "fetch_source_package", self._way("distribution"))
        monkeypatch.setattr(source_module, "fetch_official_tarball", self._way("official"))

    def _way(self, name: str) -> Callable[..., Fetched]:
        def fetch(asked: AskedVersion, **_: object) -> Fetched:
            self.asked.append(name)
            fetched: Fetched | None = getattr(self, name)
            if fetched is None:
                raise SourceUnavailable(f"{name} has no {asked}")
            return fetched

        return fetch


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(monkeypatch)


@pytest.fixture
def ensure(tmp_path: Path, scripted: ScriptedCommands) -> Callable[..., Source]:
    def call(version: str, tarball: Path | None = None) -> Source:
        return ensure_source(
            version,
            cache_directory=tmp_path / "cache",
            commands=scripted,
            tarball=tarball,
            progress=ignore,
        )

    return call


def test_given_tarball_comes_before_everything(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    given = make_tarball("18.6")
    source = ensure("18", given)
    assert ("18.6", "given tarball", str(given)) == (source.version, source.origin, source.origin_detail)
    assert sha256_of(given) == source.tarball_sha256
    assert given.read_bytes() == source.tarball.read_bytes()
    assert given != source.tarball
    assert [] == ways.asked


def test_distribution_comes_before_the_official_site_and_the_cache_before_both(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    tarball = make_tarball("18.6", name="postgresql-18_18.6.orig.tar.bz2")
    ways.distribution = Fetched(tarball, "18.6", "postgresql-18 18.6-3 (testing)", None)
    ways.official = Fetched(tarball, "18.6", "https://site.example/x", None)
    first, second = ensure("18"), ensure("18")
    assert ["distribution"] == ways.asked
    assert ("distribution", "postgresql-18 18.6-3 (testing)") == (first.origin, first.origin_detail)
    assert ("cache", "distribution: postgresql-18 18.6-3 (testing)") == (second.origin, second.origin_detail)
    assert first.tarball == second.tarball
    assert first.tarball.name == "postgresql-18.6.tar.bz2"


def test_official_site_is_asked_last(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    tarball = make_tarball("17.11")
    ways.official = Fetched(tarball, "17.11", "https://site.example/x", sha256_of(tarball))
    assert "official" == ensure("17").origin
    assert ["distribution", "official"] == ways.asked


def test_tarball_with_a_wrong_checksum_is_not_taken(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    ways.distribution = Fetched(make_tarball("18.6"), "18.6", "package", "0" * 64)
    with pytest.raises(RequirementMissing, match="its origin promises 0000"):
        ensure("18")


def test_nothing_anywhere_tells_all_ways_with_reasons_and_how_to_give_a_tarball(
    ways: Ways, ensure: Callable[..., Source]
) -> None:
    with pytest.raises(RequirementMissing) as raised:
        ensure("18.6")
    assert ["distribution", "official"] == ways.asked
    reasons = raised.value.reasons
    assert "no source of PostgreSQL 18.6 was given, and the cache has none" == reasons[0]
    assert "the distribution's source package: distribution has no 18.6" == reasons[1]
    assert "the official tarball: official has no 18.6" == reasons[2]
    assert "postgresql-18.6.tar.bz2" in reasons[3]
    assert "--tarball" in reasons[3]


@pytest.mark.usefixtures("ways")
def test_cache_answers_a_major_version_with_its_newest_release(
    ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    for version in ("18.9", "18.10", "17.11"):
        ensure(version, make_tarball(version))
    assert "18.10" == ensure("18").version
    assert "18.9" == ensure("18.9").version


def test_cached_release_that_was_not_asked_for_is_passed_over(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    ensure("18.6", make_tarball("18.6"))
    with pytest.raises(RequirementMissing):
        ensure("18.7")
    assert ["distribution", "official"] == ways.asked


@pytest.mark.usefixtures("ways")
def test_given_tarball_stands_behind_a_fetched_one_of_the_same_release(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    ways.distribution = Fetched(make_tarball("18.6"), "18.6", "package", None)
    fetched = ensure("18")
    patched = ensure("18", make_tarball("18.6", name="patched.tar.bz2", content="changed"))
    assert fetched.tarball_sha256 != patched.tarball_sha256
    assert fetched.tarball_sha256 == ensure("18").tarball_sha256


@pytest.mark.usefixtures("ways")
def test_given_tarball_of_another_release_is_refused(
    ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    with pytest.raises(PlanError, match=r"holds PostgreSQL 17\.11, but 18 was asked for"):
        ensure("18", make_tarball("17.11"))


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("content", [b"", b"no tarball at all"])
def test_given_file_that_is_no_tarball_is_refused(
    ensure: Callable[..., Source], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "postgresql-18.6.tar.bz2"
    path.write_bytes(content)
    with pytest.raises(PlanError, match="cannot be read as a tarball"):
        ensure("18", path)


@pytest.mark.usefixtures("ways")
def test_given_file_that_is_not_there_is_refused(ensure: Callable[..., Source], tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        ensure("18", tmp_path / "absent.tar.bz2")


def test_interrupted_copy_is_not_taken_for_a_source(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    kept = ensure("18.6", make_tarball("18.6"))
    (kept.tarball.parent / "source.json").unlink()
    with pytest.raises(RequirementMissing):
        ensure("18.6")
    assert ["distribution", "official"] == ways.asked


def test_what_a_killed_fetch_left_is_removed_by_the_next(
    ways: Ways, ensure: Callable[..., Source], make_tarball: MakeTarball, tmp_path: Path
) -> None:
    left = tmp_path / "cache" / "sources" / ".work-fetched"
    (left / "apt").mkdir(parents=True)
    ways.distribution = Fetched(make_tarball("18.6"), "18.6", "package", None)
    ensure("18")
    assert ["postgresql-18.6"] == [
        item.name.rsplit("-", 1)[0] for item in left.parent.iterdir() if item.is_dir()
    ]


@pytest.mark.usefixtures("ways")
def test_tarball_that_changed_in_the_cache_is_not_unpacked(
    ensure: Callable[..., Source], make_tarball: MakeTarball
) -> None:
    source = ensure("18.6", make_tarball("18.6"))
    source.tarball.write_bytes(b"rotten")
    with pytest.raises(OutputNotUnderstood, match="SHA-256"):
        builds.unpacked_tree(source, progress=ignore)
    assert not (source.tarball.parent / "tree").exists()


@pytest.mark.usefixtures("ways")
def test_source_is_unpacked_once(ensure: Callable[..., Source], make_tarball: MakeTarball) -> None:
    source, said = ensure("18.6", make_tarball("18.6")), list[str]()
    trees = [builds.unpacked_tree(source, progress=said.append) for _ in range(2)]
    assert trees[0] == trees[1]
    assert (trees[0] / "configure").is_file()
    assert 1 == len(said)


@pytest.mark.parametrize("way", ["given", "fetched", "kept"])
def test_a_release_that_is_named_has_one_checksum_however_it_comes(
    ways: Ways,
    ensure: Callable[..., Source],
    make_tarball: MakeTarball,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    tarball = make_tarball("18.6")
    if way == "kept":
        ensure("18", tarball)
    monkeypatch.setattr(builds, "_KNOWN_SHA256", {"18.6": "0" * 64})
    if way == "given":
        with pytest.raises(PlanError) as refused:
            ensure("18", tarball)
        said, way_out = refused.value.reasons
        assert "is not PostgreSQL 18.6 as it was released" in said
        assert sha256_of(tarball) in said
        assert "fetch postgresql-18.6.tar.bz2 again" in way_out
        assert "source = { tree" in way_out
        return
    ways.official = Fetched(tarball, "18.6", "https://site.example/x", sha256_of(tarball))
    with pytest.raises(RequirementMissing, match=r"is not PostgreSQL 18\.6 as it was released"):
        ensure("18")
    assert ["distribution", "official"] == ways.asked


@pytest.mark.usefixtures("ways")
def test_what_a_person_gave_is_a_strangers_unless_its_checksum_is_known(
    ensure: Callable[..., Source], make_tarball: MakeTarball, monkeypatch: pytest.MonkeyPatch
) -> None:
    tarball = make_tarball("18.6")
    assert ensure("18", tarball).is_strangers
    assert ensure("18").is_strangers
    monkeypatch.setattr(builds, "_KNOWN_SHA256", {"18.6": sha256_of(tarball)})
    assert not ensure("18", tarball).is_strangers


@pytest.mark.parametrize("text", ["", "13", "14", "9.6", "18.6.1", "18beta1", "eighteen", "18.", "-18", "1٨"])
def test_version_that_cannot_be_built_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="15, 16, 17, 18"):
        parse_version(text)


def test_major_version_accepts_releases_only() -> None:
    accepted = [
        item for item in ("18.6", "18.0", "19.1", "18beta1", "18", "") if parse_version("18").accepts(item)
    ]
    assert ["18.6", "18.0"] == accepted
    assert release_key("18~rc1") is None
    assert release_key("18.10") == (18, 10)
