from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.model.cell import ClusterLevels, FilesystemLevels, Throttle
from bedplate.model.codec import dumps, loads
from bedplate.model.levels import Levels
from bedplate.model.plan import DEFAULTS_VERSION, Plan
from bedplate.plan.load import load_plan
from bedplate.plan.words import mount_option

LoadText = Callable[[str], Plan]
ReasonsOf = Callable[[str], tuple[str, ...]]
Edited = Callable[..., str]


def test_a_minimal_plan_has_the_documented_defaults(load_text: LoadText, minimal: str) -> None:
    plan = load_text(minimal)
    assert (5, 1, "local", 1) == (plan.repetitions, plan.seed, plan.executor, len([*plan.cells()]))
    (cell,) = plan.cells()
    assert FilesystemLevels("ext4") == cell.filesystem
    assert ClusterLevels() == cell.cluster
    assert ("18", 8192, 8192) == (
        cell.build.version,
        cell.build.block_size_bytes,
        cell.build.wal_block_size_bytes,
    )
    (run,) = plan.workloads[0].runs
    assert run.name == "read-only"
    assert (
        Levels(
            script="read-only",
            clients=1,
            jobs=1,
            warmup="fixed",
            warmup_s=30.0,
            duration_s=10.0,
            protocol="prepared",
        )
        == run.levels
    )


def test_a_bare_list_is_one_level_and_vary_makes_several(load_text: LoadText, edited: Edited) -> None:
    one = load_text(edited('mount_options = ["noatime", "commit=30"]', "filesystem"))
    assert [("noatime", "commit=30")] == [entry.mount_options for entry in one.filesystems]
    two = load_text(edited('mount_options = { vary = [[], ["noatime"]] }', "filesystem"))
    assert [(), ("noatime",)] == [entry.mount_options for entry in two.filesystems]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fsync = false", {"fsync": "off"}),
        ("JIT = true", {"jit": "on"}),
        ("random_page_cost = 2.0", {"random_page_cost": "2"}),
        ("random_page_cost = 1.1", {"random_page_cost": "1.1"}),
        ("work_mem = 4096", {"work_mem": "4096"}),
        ("pg_stat_statements.max = 1000", {"pg_stat_statements.max": "1000"}),
    ],
)
def test_settings_are_written_as_the_server_reads_them(
    load_text: LoadText, edited: Edited, line: str, expected: dict[str, str]
) -> None:
    plan = load_text(edited(line, "postgresql.settings"))
    assert Levels(expected) == plan.clusters[0].settings


def test_named_and_explicit_throttles_are_levels(load_text: LoadText, edited: Edited) -> None:
    line = 'throttle = { vary = ["hdd-7200", { write_iops = 20, read_bandwidth = "1 MB" }] }'
    plan = load_text(edited(line, "scratch_device"))
    assert [
        Throttle("hdd-7200", 150, 150, 125_000_000, 125_000_000),
        Throttle("custom-w20-rb1048576", None, 20, 2**20, None),
    ] == [device.throttle for device in plan.devices]


def test_read_ahead_is_kept_in_kb(load_text: LoadText, edited: Edited) -> None:
    plan = load_text(edited('read_ahead = "4 MB"', "scratch_device"))
    assert plan.devices[0].read_ahead_kb == 4096


def test_each_level_of_a_run_is_a_run_with_its_level_in_the_name(load_text: LoadText, edited: Edited) -> None:
    text = edited('clients = { vary = [1, 10] }\nrate = { vary = ["unlimited", 500] }', "workload.run")
    runs = load_text(text).workloads[0].runs
    assert [
        "read-only-clients-1-rate-unlimited",
        "read-only-clients-1-rate-500",
        "read-only-clients-10-rate-unlimited",
        "read-only-clients-10-rate-500",
    ] == [run.name for run in runs]
    assert [None, 500.0, None, 500.0] == [run.levels.number("rate_tps") for run in runs]
    assert [1, 1, 10, 10] == [run.levels.integer("jobs") for run in runs]


def test_a_study_of_before_keeps_two_threads_where_its_plan_is_silent(
    load_text: LoadText, edited: Edited, tmp_path: Path
) -> None:
    silent, asked = (edited(line, "workload.run") for line in ("clients = 8", "clients = 8\njobs = 4"))
    threads = {
        version: [
            run.levels.integer("jobs")
            for text in (silent, asked)
            for run in load_plan(text, source="plan", directory=tmp_path, defaults=version).workloads[0].runs
        ]
        for version in (1, DEFAULTS_VERSION)
    }
    assert {1: [2, 4], 2: [8, 4]} == threads
    assert load_text(silent) == load_plan(silent, source="plan", directory=tmp_path)


def test_until_steady_keeps_its_limit(load_text: LoadText, edited: Edited) -> None:
    text = edited('warmup = "until steady"\nwarmup_limit = "20 min"', "workload.run")
    levels = load_text(text).workloads[0].runs[0].levels
    assert ("until steady", 1200.0) == (levels["warmup"], levels["warmup_s"])


def test_an_own_script_and_configuration_become_part_of_the_plan(
    load_text: LoadText, minimal: str, edited: Edited, tmp_path: Path
) -> None:
    (tmp_path / "mine.sql").write_text("SELECT 1;\n")
    (tmp_path / "mine.conf").write_text("work_mem = '8MB'\n#port = 1\n")
    plan = load_text(edited('script = "mine.sql"', "workload.run"))
    run = plan.workloads[0].runs[0]
    assert ("mine", "custom", "SELECT 1;\n") == (run.name, run.levels["script"], run.levels["script_text"])
    plan = load_text(f'{minimal}[postgresql]\nconfiguration = "mine.conf"\n')
    assert plan.clusters[0].configuration == "work_mem = '8MB'\n#port = 1\n"
    assert {"mine.conf": "work_mem = '8MB'\n#port = 1\n"} == plan.files
    assert plan.warnings == ()


def test_warns_of_what_an_own_configuration_cannot_decide(
    load_text: LoadText, minimal: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.conf").write_text("listen_addresses = '*'\nPort 5433\n")
    plan = load_text(f'{minimal}[postgresql]\nconfiguration = "mine.conf"\n')
    assert plan.warnings == (
        "postgresql.configuration: bedplate's own listen_addresses, port win over the file's",
    )


@pytest.mark.parametrize(
    ("more", "warned"),
    [
        ("", True),
        ("scaled_block_settings = true\n", False),
        ('settings.effective_cache_size = "1GB"\n', False),
    ],
)
def test_warns_of_a_cache_size_that_follows_the_block_size(
    load_text: LoadText, minimal: str, more: str, *, warned: bool
) -> None:
    costs = "[postgresql]\nscaled_page_costs = true\n"
    several = 'block_size = { vary = ["4 kB", "32 kB"] }\n'
    found = load_text(f"{minimal}{costs}{several}{more}").warnings
    assert warned == any("effective_cache_size is left at PostgreSQL's default" in text for text in found)
    assert load_text(f"{minimal}{costs}{more}").warnings == (), "one block size has nothing to follow"
    assert load_text(f"{minimal}[postgresql]\n{several}{more}").warnings == ()


def test_all_errors_come_at_once_with_file_key_found_and_allowed(
    reasons_of: ReasonsOf,
) -> None:
    text = """
titel = "x"
repetitions = 0
executor = "docker"
[scratch_device]
device = "/dev/sda"
[[filesystem]]
type = { vary = ["ext4", "reiser4"] }
mount_option = []
[[workload]]
type = "pgbench"
scale = "4x ram"
[[workload.run]]
script = "read-only"
"""
    reasons = reasons_of(text)
    expected = [
        "p.toml: repetitions: found 0; allowed is a whole number from 1 to 1000",
        "p.toml: executor: found 'docker'; allowed: local",
        "p.toml: scratch_device.device: found '/dev/sda'; '/dev/sda' may be another disk after the next boot; ",
        "p.toml: filesystem[0].type.vary[1]: found 'reiser4'; allowed: ext2, ext3, ext4, xfs, btrfs, jfs, ",
        "p.toml: filesystem[0].mount_option: unknown key; did you mean mount_options?",
        "p.toml: workload[0].scale: found '4x ram'; allowed is a whole number from 1 to 1000000, or a multiple",
        "p.toml: titel: unknown key; did you mean title?",
    ]
    assert len(expected) == len(reasons)
    for start, reason in zip(expected, reasons, strict=True):
        assert reason.startswith(start)


@pytest.mark.parametrize(
    ("table", "line", "key", "why"),
    [
        ("", "title = 5", "title", "one line"),
        ("", 'title = "a\\u0000b"', "title", "printable"),
        ("", "repetitions = true", "repetitions", "whole number"),
        ("", "repetitions = 2.0", "repetitions", "whole number"),
        ("", "seed = -1", "seed", "whole number"),
        ("scratch_device", 'image_size = "5 MB"', "scratch_device.image_size", "512 MiB"),
        ("scratch_device", f'image_size = "{"9" * 400} TB"', "scratch_device.image_size", "512 MiB"),
        ("scratch_device", 'device = "/dev/disk/by-id/x"', "scratch_device", "allowed is one of"),
        ("scratch_device", "read_ahead = 8192", "scratch_device.read_ahead", "4096 kB"),
        ("scratch_device", 'read_ahead = "1 B"', "scratch_device.read_ahead", "whole number of kB"),
        ("scratch_device", 'scheduler = "cfq"', "scratch_device.scheduler", "none, mq-deadline"),
        ("scratch_device", 'throttle = "floppy"', "scratch_device.throttle", "hdd-7200"),
        ("scratch_device", "throttle = {}", "scratch_device.throttle", "hdd-7200"),
        ("scratch_device", "throttle = { iops = 5 }", "scratch_device.throttle", "unknown key"),
        ("filesystem", 'data = "writback"', "filesystem[0].data", "did you mean writeback?"),
        ("", 'executor = "locla"', "executor", "did you mean local?"),
        ("machine", "memory = 2", "machine.memory", "256 MiB"),
        ("filesystem", 'block_size = "3 kB"', "filesystem[0].block_size", "512 B, 1 kB"),
        ("filesystem", "block_size = { vary = [] }", "filesystem[0].block_size", "at least one level"),
        ("filesystem", 'block_size = { vary = ["1 kB", 1024] }', "filesystem[0].block_size", "listed twice"),
        (
            "filesystem",
            'block_size = { vary = ["1 kB"], also = 1 }',
            "filesystem[0].block_size",
            "alone in its table",
        ),
        ("filesystem", 'barrier = "off"', "filesystem[0].barrier", "true and false"),
        ("filesystem", "barrier = 1", "filesystem[0].barrier", "true and false"),
        ("filesystem", 'journal = "outside"', "filesystem[0].journal", "internal, external, none"),
        ("filesystem", 'mount_options = "noatime"', "filesystem[0].mount_options", "list of texts"),
        (
            "filesystem",
            'mount_options = { vary = ["noatime"] }',
            "filesystem[0].mount_options.vary[0]",
            "a list",
        ),
        ("postgresql", "version = 14", "postgresql.version", "15, 16, 17, 18"),
        ("postgresql", "version = 18.6", "postgresql.version", "as text"),
        ("postgresql", 'block_size = "64 kB"', "postgresql.block_size", "32 kB"),
        ("postgresql", "block_size = 8", "postgresql.block_size", "8 kB"),
        ("postgresql.settings", "port = 1", "postgresql.settings.port", "private Unix socket"),
        ("postgresql.settings", 'Listen_Addresses = "*"', "postgresql.settings.Listen_Addresses", "sets"),
        ("postgresql.settings", 'archive_command = "rm"', "postgresql.settings.archive_command", "program"),
        ("postgresql.settings", '"a b" = 1', "postgresql.settings.'a b'", "letters"),
        ("postgresql.settings", 'work_mem = "1\\n2"', "postgresql.settings.work_mem", "printable"),
        ("postgresql.settings", "work_mem = 1\nWORK_MEM = 2", "postgresql.settings", "set twice"),
        ("postgresql.settings", "a.b.c = 1", "postgresql.settings.a.b", "a number"),
        ("workload", "scale = 0", "workload[0].scale", "4x memory"),
        ("workload", "scale = { vary = [5, 5] }", "workload[0].scale", "listed twice"),
        ("workload.run", "duration = 0", "workload[0].run[0].duration", "whole number of seconds"),
        ("workload.run", "duration = 1.5", "workload[0].run[0].duration", "whole number of seconds"),
        ("workload.run", "duration = nan", "workload[0].run[0].duration", "whole number of seconds"),
        ("workload.run", 'warmup = "until warm"', "workload[0].run[0].warmup", "until steady"),
        ("workload.run", "warmup_limit = 5", "workload[0].run[0]", "until steady"),
        ("workload.run", "rate = 0", "workload[0].run[0].rate", "unlimited"),
        ("workload.run", "clients = 2\njobs = 3", "workload[0].run[0]", "no more threads"),
        ("workload.run", 'script = "readonly"', "workload[0].run[0].script", "no such file"),
        ("workload.run", 'name = "a/b"', "workload[0].run[0].name", "letters"),
        ("canary", "every = 5", "canary.every", "whole number of seconds from 60"),
    ],
)
def test_a_wrong_value_is_named_with_its_key_and_what_is_allowed(
    *, reasons_of: ReasonsOf, edited: Edited, table: str, line: str, key: str, why: str
) -> None:
    (reason,) = reasons_of(edited(line, table))
    assert reason.startswith(f"p.toml: {key}: found ")
    assert why in reason


def test_a_setting_beside_the_keys_of_its_engine_is_told_where_settings_stand(
    reasons_of: ReasonsOf, edited: Edited
) -> None:
    (reason,) = reasons_of(edited("wal_sync_method = 'fdatasync'", "postgresql"))
    assert reason.endswith("settings; a setting of the server goes into [postgresql.settings]")
    (clock,) = reasons_of(edited("time = '60 s'", "workload"))
    assert "slurm" not in clock


@pytest.mark.parametrize(
    ("table", "line", "home"),
    [
        ("", 'kernel = "6.12"', "[machine]"),
        ("", 'mount_options = ["noatime"]', "[[filesystem]]"),
        ("", "scale_factor = 3", "[[workload]]"),
        ("machine", "repetitions = 3", "the plan itself, above its tables"),
        ("machine", "type = 'ext4'", "[[filesystem]] and of [[workload]]"),
        ("workload.run", "scale = 5", "[[workload]]"),
        ("workload", "clients = 5", "[[workload.run]]"),
    ],
)
def test_a_key_in_the_wrong_table_is_told_where_it_belongs(
    *, reasons_of: ReasonsOf, edited: Edited, table: str, line: str, home: str
) -> None:
    (reason,) = reasons_of(edited(line, table))
    assert reason.endswith(f"{line.partition(' ')[0]}: unknown key; it is a key of {home}")


def test_an_empty_list_of_tables_is_no_plan(reasons_of: ReasonsOf, minimal: str) -> None:
    text = "filesystem = []\n" + minimal.replace('[[filesystem]]\ntype = "ext4"\n', "")
    assert reasons_of(text) == ("p.toml: filesystem: found []; allowed are one or more tables",)


def test_one_variant_twice_is_an_error_not_two_results(reasons_of: ReasonsOf, minimal: str) -> None:
    (reason,) = reasons_of(f'{minimal}[[filesystem]]\ntype = {{ vary = ["xfs", "ext4"] }}\n')
    assert reason.startswith("p.toml: filesystem[1]: makes the same variant as filesystem[0]")


def test_one_dataset_is_loaded_once(reasons_of: ReasonsOf, minimal: str) -> None:
    workload = minimal[minimal.index("[[workload]]") :]
    (reason,) = reasons_of(minimal + workload)
    assert reason.startswith("p.toml: workload[1].scale: loads the same dataset as workload[0]")


def test_two_runs_of_one_name_need_names(reasons_of: ReasonsOf, load_text: LoadText, minimal: str) -> None:
    run = minimal[minimal.index("[[workload.run]]") :]
    (reason,) = reasons_of(minimal + run)
    assert reason == "p.toml: workload[0].run: two runs are called read-only; give each a name"
    plan = load_text(f'{minimal}{run}name = "again"\n')
    assert ["read-only", "again"] == [spec.name for spec in plan.workloads[0].runs]


def test_a_gigantic_product_is_refused_with_its_count_before_it_is_made(
    reasons_of: ReasonsOf, minimal: str
) -> None:
    levels = ", ".join(str(number) for number in range(100))
    settings = "\n".join(f"s{number} = {{ vary = [{levels}] }}" for number in range(50))
    (reason,) = reasons_of(f"{minimal}[postgresql.settings]\n{settings}\n")
    assert f"comes to {100**50} cells" in reason
    assert "allowed are 20000" in reason


def test_too_many_runs_in_a_visit_are_refused(reasons_of: ReasonsOf, edited: Edited) -> None:
    clients = ", ".join(str(number) for number in range(1, 51))
    durations = ", ".join(str(number) for number in range(1, 51))
    text = edited(
        f"clients = {{ vary = [{clients}] }}\nrate = {{ vary = [{durations}] }}",
        "workload.run",
    )
    (reason,) = reasons_of(text)
    assert reason == "p.toml: workload[0]: 2500 runs in one visit; allowed are 1000"


_BLOCKS = st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), min_size=1, max_size=6, unique=True)


@given(
    blocks=_BLOCKS,
    barrier=st.sampled_from(["", "barrier = true", "barrier = { vary = [true, false] }"]),
    options=st.lists(st.from_regex(r"[a-z][a-z0-9_=]{0,8}", fullmatch=True), max_size=3),
    seed=st.integers(0, 2**53 - 1),
)
def test_what_is_written_is_what_is_asked(
    blocks: list[int], barrier: str, options: list[str], seed: int
) -> None:
    kept = []
    for option in options:
        try:
            kept.append(mount_option(option))
        except ValueError:
            continue
    text = f"""
title = "t"
seed = {seed}
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
mount_options = {kept!r}
{barrier}
[postgresql]
block_size = {{ vary = {[f"{block} kB" for block in blocks]!r} }}
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
duration = 1
"""
    plan = load_plan(text, source="p.toml", directory=Path("/nonexistent"))
    assert [block * 1024 for block in blocks] == [build.block_size_bytes for build in plan.builds]
    assert {tuple(kept)} == {entry.mount_options for entry in plan.filesystems}
    assert seed == plan.seed
    assert len([*plan.cells()]) == len({cell.id for cell in plan.cells()})
    assert plan == loads(Plan, dumps(plan))


def test_a_list_in_the_place_of_a_level_names_vary(reasons_of: ReasonsOf) -> None:
    text = """
title = "t"
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = ["ext4", "xfs"]
mount_options = ["noatime"]
[postgresql.settings]
work_mem = ["1MB", "2MB"]
[[workload]]
type = "pgbench"
scale = 5
[[workload.run]]
script = "read-only"
clients = [1, 2]
duration = "60 s"
"""
    several = "one key has one level; several are written { vary = "
    assert [
        f"p.toml: filesystem[0].type: found ['ext4', 'xfs']; {several}['ext4', 'xfs'] }}",
        f"p.toml: postgresql.settings.work_mem: found ['1MB', '2MB']; {several}['1MB', '2MB'] }}",
        f"p.toml: workload[0].run[0].clients: found [1, 2]; {several}[1, 2] }}",
    ] == sorted(reasons_of(text))
