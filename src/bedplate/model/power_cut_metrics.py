"""The metrics of a run of power cuts: of all cuts, and of those of one profile (phase `cut`)."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale

_LOWER, _NEITHER = Better.LOWER, Better.NEITHER

POWER_CUT_METRICS = (
    Metric(
        "power_cuts", "1", Scale.COUNT, _NEITHER, "cuts that were replayed and judged, without the controls"
    ),
    Metric(
        "power_cuts_bad",
        "1",
        Scale.COUNT,
        _LOWER,
        "cuts after which something acknowledged was missing or damaged; of a run those of a volatile cache, whatever its sectors, at positions that chance chose",
    ),
    Metric(
        "power_cut_bad_share",
        "share",
        Scale.PROPORTION,
        _LOWER,
        "cuts after which something acknowledged was missing or damaged / the cuts of that kind",
    ),
    Metric(
        "power_cuts_repaired",
        "1",
        Scale.COUNT,
        _LOWER,
        "cuts after which the file system needed fsck, and was then whole",
    ),
    Metric(
        "lost_transactions_max",
        "1",
        Scale.COUNT,
        _LOWER,
        "most acknowledged transactions that one cut took, of cuts that left the rest whole; 0 where no cut took any, absent where each that did broke the rest",
    ),
    Metric(
        "lost_ms_max",
        "ms",
        Scale.RATIO,
        _LOWER,
        "longest time before a cut at which the first missing transaction was acknowledged",
    ),
    Metric(
        "recovery_s_median",
        "s",
        Scale.RATIO,
        _LOWER,
        "median over the cuts of mounting, fsck where it was needed, and starting the engine",
    ),
    Metric(
        "recovery_s_max",
        "s",
        Scale.RATIO,
        _LOWER,
        "longest mounting, fsck and starting of the engine after a cut",
    ),
    Metric(
        "recovery_mount_s", "s", Scale.RATIO, _LOWER, "median time of mounting, with the journal's recovery"
    ),
    Metric("recovery_fsck_s", "s", Scale.RATIO, _LOWER, "median time of fsck, of the cuts that needed it"),
    Metric(
        "recovery_engine_s", "s", Scale.RATIO, _LOWER, "median time of the engine's start, with its recovery"
    ),
    Metric(
        "recorded_commits_per_s",
        "1/s",
        Scale.RATIO,
        _NEITHER,
        "transactions acknowledged while recording, in memory and through the recorder: no speed to compare",
    ),
    Metric(
        "recorded_flushes_per_commit",
        "1",
        Scale.RATIO,
        _NEITHER,
        "flushes of data and journal device while recording / transactions acknowledged",
    ),
)
