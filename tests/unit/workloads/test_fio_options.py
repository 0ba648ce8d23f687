from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.levels import Scalar
from bedplate.workloads.fio.jobs import FIO_OPTIONS, fio_misfits, fio_words

# Each would start a program, load a library, touch something outside the job's own files, or listen.
DANGEROUS: dict[str, Scalar] = {
    "exec_prerun": "rm -rf /",
    "exec_postrun": "true",
    "filename": "/dev/vda",
    "directory": "/etc",
    "opendir": "/",
    "filename_format": "../../etc/passwd",
    "lockfile": "exclusive",
    "write_iolog": "/etc/passwd",
    "read_iolog": "/etc/passwd",
    "replay_redirect": "/dev/vda",
    "merge_blktrace_file": "/tmp/x",
    "write_bw_log": "/etc/x",
    "verify_state_save": True,
    "verify_state_load": True,
    "allow_mounted_write": True,
    "cgroup": "/",
    "cgroup_weight": 5,
    "uid": 0,
    "gid": 0,
    "nice": -20,
    "profile": "tiobench",
    "mem": "mmaphuge:/dev/mem",
    "ioscheduler": "none",
    "unlink_each_loop": True,
    "trigger": "reboot",
    "trigger-file": "/tmp/x",
    "server": "ip:127.0.0.1",
    "client": "example",
    "output": "/etc/passwd",
    "aux-path": "/etc",
    "hostname": "example",
    "name": "another job",
    "section": "x",
    "numjobs=1 --exec_prerun": "x",
    "rw ": "read",
    "RW": "read",
    "": "x",
}


@pytest.mark.parametrize("name", DANGEROUS)
def test_an_option_that_is_not_listed_is_refused_with_those_that_are(name: str) -> None:
    words, reasons = fio_words({name: DANGEROUS[name]})
    assert {} == words
    assert 1 == len(reasons)
    assert repr(name) in reasons[0]
    assert "rw, " in reasons[0]


@pytest.mark.parametrize(
    "engine",
    [
        "exec",
        "external:/tmp/x.so",
        "net",
        "netsplice",
        "sg",
        "nbd",
        "filedelete",
        "mtd",
        "e4defrag",
        "rbd",
        "null",
    ],
)
def test_an_engine_that_is_no_file_io_is_refused(engine: str) -> None:
    words, reasons = fio_words({"ioengine": engine})
    assert ({}, 1) == (words, len(reasons))
    assert "io_uring" in reasons[0]


def test_a_short_form_is_refused_with_the_long_one() -> None:
    _, reasons = fio_words({"ss": "iops:5%"})
    assert "write steadystate" in reasons[0]


def test_sizes_and_times_reach_fio_as_bytes_and_milliseconds() -> None:
    words, reasons = fio_words({"bs": "8 kB", "size": 4096, "runtime": "1.5 min", "ramp_time": 0.25})
    assert [] == reasons
    assert {"bs": "8192", "size": "4096", "runtime": "90000ms", "ramp_time": "250ms"} == words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rw", "trim"),
        ("rw", "randtrim"),
        ("rw", "write:8k"),
        ("rw", True),
        ("bs", 0),
        ("bs", "4k,8k"),
        ("bs", "4k:50"),
        ("bs", -4096),
        ("bs", True),
        ("bs", 4096.0),
        ("size", "100%"),
        ("size", 2**63),
        ("size", "99999999999999999999999 TB"),
        ("iodepth", 0),
        ("iodepth", "8"),
        ("iodepth", True),
        ("iodepth", 8.0),
        ("direct", 1),
        ("direct", "1"),
        ("runtime", 0),
        ("runtime", 0.0001),
        ("runtime", "forever"),
        ("runtime", float("nan")),
        ("runtime", float("inf")),
        ("runtime", 1e300),
        ("rwmixread", 100),
        ("steadystate", "iops"),
        ("steadystate", "iops:5"),
        ("steadystate_duration", 1),
        ("steadystate_duration", 2.5),
        ("steadystate", "iops:5%\n"),
        ("steadystate", "iops:٥%"),
        ("sync_file_range", "write:"),
        ("sync_file_range", "write:8 --exec_prerun=x"),
        ("random_distribution", "zoned:50/5:30/15"),
        ("random_distribution", "zipf:$(id)"),
        ("random_distribution", "zipf:`id`"),
        ("fallocate", "1"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_does(name: str, value: str | float) -> None:
    words, reasons = fio_words({name: value})
    assert {} == words
    assert [f"fio option {name} = {value!r}: it takes {FIO_OPTIONS[name].takes}"] == reasons


def misfits(**asked: str | float | bool) -> str:
    words, reasons = fio_words({"rw": "randrw", "bs": 4096, "size": "1 MB", **asked})
    assert [] == reasons
    return "; ".join(fio_misfits(words))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"iodepth": 8}, "psync has one request under way"),
        ({"iodepth": 8, "ioengine": "mmap"}, "mmap has one request under way"),
        ({"ioengine": "mmap", "direct": True}, "mmap goes through the page cache"),
        ({"direct": True, "bs": 4100}, "no multiple of 512"),
        ({"rw": "read", "rwmixread": 50}, "rw = read mixes nothing"),
        ({"rw": "randread", "fsync": 1}, "fsync: rw = randread writes nothing"),
        ({"rw": "read", "end_fsync": True}, "end_fsync: rw = read writes nothing"),
        ({"overwrite": True, "file_append": True}, "choose one"),
        ({"size": 1024}, "less than one block"),
        ({"ramp_time": 5}, "ramp_time needs a runtime"),
        ({"time_based": True}, "time_based needs a runtime"),
        ({"steadystate": "bw:5%", "runtime": 9}, "needs a steadystate_duration"),
        ({"steadystate": "bw:5%", "steadystate_duration": 5}, "steadystate needs a runtime"),
        ({"steadystate_ramp_time": 5}, "steadystate_ramp_time needs steadystate"),
        ({"rate": "1 MB", "rate_iops": 5}, "fio takes one of them"),
    ],
)
def test_what_fio_would_change_in_silence_is_refused(
    asked: dict[str, str | float | bool], reason: str
) -> None:
    assert reason in misfits(**asked)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"iodepth": 8, "ioengine": "io_uring"},
        {"rw": "read", "end_fsync": False},
        {"time_based": False},
        {"rwmixread": 70, "runtime": 5, "ramp_time": 1},
        {"steadystate": "bw_slope:0.1%", "steadystate_duration": 5, "runtime": 60},
        {"overwrite": True, "file_append": False},
    ],
)
def test_a_sound_job_passes(asked: dict[str, str | float | bool]) -> None:
    assert not misfits(**asked)


def test_a_job_without_the_three_that_it_needs_says_so() -> None:
    assert ["a fio job needs rw", "a fio job needs bs", "a fio job needs size"] == fio_misfits({})


@settings(deadline=None)
@given(
    st.sampled_from(sorted(FIO_OPTIONS)),
    st.text() | st.integers() | st.floats() | st.booleans() | st.from_regex(r"[a-z]+:\d+(\.\d+)?%?"),
)
def test_no_value_can_carry_more_than_a_plain_word(name: str, value: str | float) -> None:
    words, reasons = fio_words({name: value})
    assert 1 == len(words) + len(reasons)
    for word in words.values():
        # fio expands $ and ` in some places, and a colon begins another file or value in others.
        assert word.isascii()
        assert not set(word) & set(" \t\n\r$`\"'\\/{}()=-|;&<>")
