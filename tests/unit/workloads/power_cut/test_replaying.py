"""What a point is called for what was found: the gravest word, and absent is not zero."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tools.written_log import MARK, Written, written_log

from bedplate.cuts.log import Acknowledged, Acknowledgements, CrashState, read_log
from bedplate.cuts.records import CutPoint, Placement, PointOutcome, PointRecord, Profile
from bedplate.visit.cuts import OracleAnswer
from bedplate.workloads.power_cut.bench import Recovered, judge, with_weaker

POINT = CutPoint(4, 100, Profile.LOST, Placement.WEIGHTED, 17)
WINDOW = CrashState((90,), (90,), volatile_writes=8, volatile_bytes=4096, kept_writes=0, kept=())
MOUNTED = Recovered(mounted=True, mount_s=0.02, unclean=False)
ALL_THERE: Mapping[int, int] = {0: 3, 1: 2}


@pytest.fixture(scope="module")
def promised(tmp_path_factory: pytest.TempPathFactory) -> Acknowledged:
    """Client 0 was promised three transactions, client 1 two, a millisecond apart."""
    marks = [(0, 1), (0, 2), (1, 1), (0, 3), (1, 2)]
    entries = [
        Written(flags=MARK, text=f"A {client} {sequence} {1000 * at}".encode(), time_ns=10**6 * at)
        for at, (client, sequence) in enumerate(marks, start=1)
    ]
    path = written_log(tmp_path_factory.mktemp("log") / "log", entries)
    with read_log(path) as log:
        return Acknowledgements(log).before(len(entries))


def judged(promised: Acknowledged, recovered: Recovered, answer: OracleAnswer | None) -> PointRecord:
    return judge(POINT, WINDOW, promised, recovered, answer)


def test_all_there_and_whole_is_ok(promised: Acknowledged) -> None:
    record = judged(promised, MOUNTED, OracleAnswer(ALL_THERE, start_s=0.1, oracle_s=0.2))
    assert record.outcome is PointOutcome.OK
    assert (record.acknowledged, record.lost_transactions, record.lost_ms) == (5, 0, None)
    assert (record.consistent, record.problems) == (True, ())
    assert (record.mount_s, record.fsck_s, record.engine_start_s, record.oracle_s) == (0.02, None, 0.1, 0.2)
    assert (record.flush_position, record.volatile_writes, record.kept_writes) == (90, 8, 0)


def test_one_that_was_never_promised_is_no_problem(promised: Acknowledged) -> None:
    assert judged(promised, MOUNTED, OracleAnswer({0: 4, 1: 3})).outcome is PointOutcome.OK


def test_a_missing_promise_is_lost_with_its_age(promised: Acknowledged) -> None:
    record = judged(promised, MOUNTED, OracleAnswer({0: 1, 1: 2}))
    assert record.outcome is PointOutcome.LOST
    assert (record.lost_transactions, record.lost_ms) == (2, 3.0)
    assert record.consistent is True
    assert record.problems == ("2 of 5 acknowledged transactions are missing",)


def test_a_journal_that_was_dropped_is_told_whatever_came_of_it(promised: Acknowledged) -> None:
    dropped = Recovered(mounted=True, repaired=True, replay_failed=True)
    assert judged(promised, dropped, OracleAnswer(ALL_THERE)).replay_failed
    assert judged(promised, Recovered(mounted=False, replay_failed=True), None).replay_failed
    assert not judged(promised, MOUNTED, OracleAnswer(ALL_THERE)).replay_failed


def test_a_client_without_anything_has_lost_everything(promised: Acknowledged) -> None:
    assert judged(promised, MOUNTED, OracleAnswer({0: 3})).lost_transactions == 2
    assert judged(promised, MOUNTED, OracleAnswer({})).lost_transactions == 5


@pytest.mark.parametrize(
    "recovered",
    [Recovered(mounted=True, repaired=True, fsck_s=0.3), Recovered(mounted=True, unclean=True, fsck_s=0.3)],
)
def test_a_repair_that_works_is_no_loss(promised: Acknowledged, recovered: Recovered) -> None:
    record = judged(promised, recovered, OracleAnswer(ALL_THERE))
    assert record.outcome is PointOutcome.NEEDS_FSCK
    assert not record.outcome.is_bad
    assert record.fsck_s == 0.3
    assert judged(promised, recovered, OracleAnswer({})).outcome is PointOutcome.LOST


def test_the_engines_own_complaint_wins_over_what_only_the_oracle_sees(promised: Acknowledged) -> None:
    record = judged(promised, MOUNTED, OracleAnswer(ALL_THERE, detected=("invalid page",), silent=("a gap",)))
    assert record.outcome is PointOutcome.DETECTED
    assert record.problems == ("invalid page", "a gap")
    assert (
        judged(promised, MOUNTED, OracleAnswer(ALL_THERE, silent=("a gap",))).outcome is PointOutcome.SILENT
    )


def test_what_the_engine_said_of_the_disk_is_beside_what_came_of_it(promised: Acknowledged) -> None:
    said = ("LOG: could not read from WAL segment 8: Input/output error",)
    record = judged(promised, MOUNTED, OracleAnswer({}, disk_errors=said))
    assert (PointOutcome.LOST, said) == (record.outcome, record.engine_said)
    assert PointOutcome.OK is judged(promised, MOUNTED, OracleAnswer(ALL_THERE, disk_errors=said)).outcome


def test_where_nothing_could_be_asked_nothing_is_known(promised: Acknowledged) -> None:
    record = judged(promised, Recovered(mounted=False, problems=("no superblock",)), None)
    assert record.outcome is PointOutcome.FILE_SYSTEM_LOST
    assert (record.consistent, record.lost_ms, record.engine_start_s) == (None, None, None)
    assert record.problems == ("no superblock",)


def test_a_server_that_does_not_start_is_not_consistent(promised: Acknowledged) -> None:
    record = judged(promised, MOUNTED, OracleAnswer(None, detected=("the server does not start",)))
    assert record.outcome is PointOutcome.DETECTED
    assert record.consistent is False


def test_a_page_of_errors_is_cut_short(promised: Acknowledged) -> None:
    record = judged(
        promised, MOUNTED, OracleAnswer(None, detected=tuple(f"{n}\n" + "x" * 900 for n in range(50)))
    )
    assert len(record.problems) == 8
    assert all(len(problem) <= 400 and "\n" not in problem for problem in record.problems)


def test_the_words_of_a_repair_stand_before_those_of_the_engine_that_misses_what_it_took(
    promised: Acknowledged,
) -> None:
    words = ("mount: bad magic", "kernel: CRC", *(f"a try {n}" for n in range(9)), "xfs_repair -L: gone")
    recovered = Recovered(mounted=True, repaired=True, problems=words)
    engine = tuple(f"the server does not start {n}" for n in range(9))
    found = judged(promised, recovered, OracleAnswer(None, detected=engine)).problems
    assert words[:2] == found[:2]
    assert (words[-1], engine[0]) == found[4:6]


@settings(deadline=None)
@given(
    st.lists(st.text(max_size=5), max_size=2),
    st.lists(st.text(max_size=5), max_size=2),
    st.dictionaries(st.integers(0, 1), st.integers(1, 4)),
    st.booleans(),
)
def test_ok_means_that_nothing_at_all_was_found(
    promised: Acknowledged, detected: list[str], silent: list[str], present: dict[int, int], repaired: bool
) -> None:
    answer = OracleAnswer(present, tuple(detected), tuple(silent))
    record = judged(promised, Recovered(mounted=True, repaired=repaired), answer)
    whole = present.get(0, 0) >= 3 and present.get(1, 0) >= 2
    expected = not detected and not silent and whole and not repaired
    assert (record.outcome is PointOutcome.OK) is expected
    assert record.consistent is (not detected and not silent)


def record_of(profile: Profile, outcome: PointOutcome, *, control: bool = False) -> PointRecord:
    point = CutPoint(3, 40, profile, Placement.UNIFORM, seed=7, control=control)
    return PointRecord(point, outcome, None, 0, 0, 0, 1, problems=(outcome.value,))


@pytest.mark.parametrize(
    ("profile", "bad_with", "weaker", "tried"),
    [
        # Bad however the device behaves: laid to none of its doings, and nothing more is tried.
        (Profile.SUBSET_512, {Profile.ORDERED, Profile.LOST}, Profile.ORDERED, [Profile.ORDERED]),
        (Profile.SUBSET_512, {Profile.LOST}, Profile.LOST, [Profile.ORDERED, Profile.LOST]),
        (
            Profile.SUBSET_512,
            {Profile.SUBSET_4K},
            Profile.SUBSET_4K,
            [Profile.ORDERED, Profile.LOST, Profile.SUBSET_4K],
        ),
        (Profile.SUBSET_512, set(), None, [Profile.ORDERED, Profile.LOST, Profile.SUBSET_4K]),
        (Profile.SUBSET_4K, set(), None, [Profile.ORDERED, Profile.LOST]),
        (Profile.UNTORN_16K, {Profile.LOST}, Profile.LOST, [Profile.ORDERED, Profile.LOST]),
        (Profile.LOST, set(), None, [Profile.ORDERED]),
        (Profile.ORDERED, set(), None, []),
    ],
)
def test_a_bad_cut_is_tried_with_every_weaker_device_until_one_is_bad_too(
    profile: Profile, bad_with: set[Profile], weaker: Profile | None, tried: list[Profile]
) -> None:
    asked: list[CutPoint] = []

    def replay(point: CutPoint) -> PointRecord:
        asked.append(point)
        return record_of(point.profile, PointOutcome.LOST if point.profile in bad_with else PointOutcome.OK)

    record = with_weaker(record_of(profile, PointOutcome.SILENT), replay)
    assert weaker is (None if record.weaker is None else record.weaker.profile)
    assert tried == [point.profile for point in asked]
    assert {(3, 40, 7)} >= {(point.number, point.position, point.seed) for point in asked}


@pytest.mark.parametrize("profile", Profile)
def test_nothing_more_is_asked_of_a_good_cut_or_of_a_control(profile: Profile) -> None:
    def replay(_: CutPoint) -> PointRecord:
        raise AssertionError("nobody asked")

    good = record_of(profile, PointOutcome.NEEDS_FSCK)
    control = record_of(profile, PointOutcome.LOST, control=True)
    assert good is with_weaker(good, replay)
    assert control is with_weaker(control, replay)
