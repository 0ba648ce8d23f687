"""The metrics of a run of power cuts: of all cuts, and of those of one profile (phase `cut`)."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale, taken_from

# Phases: drawn cuts by profile and by the kind of device cache; those that were sought, and those in recovery, by the latter; the
# pages of the data files.
CUT, CACHE, SOUGHT, RECUT, PAGES = "cut", "cache", "sought", "recut", "pages"
_LOWER, _NEITHER = Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT = Scale.RATIO, Scale.PROPORTION, Scale.COUNT

# How an engine comes back after a cut.
RECOVERY = "mounting, fsck where it was needed, and starting the engine"
# Where some figures are taken from, unlike the others of their group.
_POINTS_AND_RECORDING = "`points.jsonl` and `recording.json`"
_RECORDING = "`recording.json`"

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
POWER_CUT_METRICS = taken_from(
    "`points.jsonl`",
    Metric("power_cuts", "1", _COUNT, _NEITHER, "cuts that were replayed and judged, without the controls"),
    Metric("power_cuts_bad", "1", _COUNT, _LOWER,
        "cuts after which something acknowledged was missing or damaged; of a run those of a volatile cache, whatever its sectors, at "
        "positions that chance chose"),
    Metric("power_cut_bad_share", "share", _PROPORTION, _LOWER,
        "cuts after which something acknowledged was missing or damaged / the cuts of that kind"),
    Metric("power_cuts_repaired", "1", _COUNT, _LOWER, "cuts after which the file system needed fsck, and was then whole"),
    Metric("lost_transactions_max", "1", _COUNT, _LOWER,
        "most acknowledged transactions that one cut took, of cuts that left the rest whole; 0 where no cut took any, absent where "
        "each that did broke the rest", _POINTS_AND_RECORDING),
    Metric("lost_ms_max", "ms", _RATIO, _LOWER,
        "longest time before a cut at which the first missing transaction was acknowledged", _POINTS_AND_RECORDING),
    Metric("recovery_s_median", "s", _RATIO, _LOWER, f"median over the cuts of {RECOVERY}"),
    Metric("recovery_s_max", "s", _RATIO, _LOWER, "longest mounting, fsck and starting of the engine after a cut"),
    Metric("recovery_mount_s", "s", _RATIO, _LOWER, "median time of mounting, with the journal's recovery"),
    Metric("recovery_fsck_s", "s", _RATIO, _LOWER, "median time of fsck, of the cuts that needed it"),
    Metric("recovery_engine_s", "s", _RATIO, _LOWER, "median time of the engine's start, with its recovery"),
    Metric("recorded_commits_per_s", "1/s", _RATIO, _NEITHER,
        "transactions acknowledged while recording, in memory and through the recorder: no speed to compare", _RECORDING),
    Metric("recorded_flushes_per_commit", "1", _RATIO, _NEITHER,
        "flushes of data and journal device while recording / transactions acknowledged", _RECORDING),
    Metric("recorded_kib_per_commit", "KiB", _RATIO, _NEITHER,
        "written to data and journal device while recording / transactions acknowledged", _RECORDING),
    Metric("recorded_wal_kib_per_commit", "KiB", _RATIO, _NEITHER,
        "WAL that the server wrote while recording / transactions acknowledged", _RECORDING),
    Metric("page_images_per_transaction", "1", _RATIO, _NEITHER,
        "whole pages in the WAL while recording / transactions acknowledged", _RECORDING),
    Metric("untorn_writes", "1", _COUNT, _NEITHER, "pages that the kernel took as untorn writes", _RECORDING),
    Metric("untorn_refused", "1", _COUNT, _LOWER,
        "pages that the kernel would not write untorn, and that were written plainly", _RECORDING),
    Metric("page_extensions", "1", _COUNT, _NEITHER, "pages written behind a file's end, where nothing old is torn", _RECORDING),
    Metric("unaligned_pages", "1", _COUNT, _LOWER,
        "pages of the data files that do not begin at a multiple of their size on the device, are in several places or in none "
        "yet; before and after the clients", _RECORDING),
)
# fmt: on
