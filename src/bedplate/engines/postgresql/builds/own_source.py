"""A source of somebody's own: a commit or a release in a folder of the build's, with patches applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.host.git.checkout import apply_named, give, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.engines.postgresql.builds.build_record import BuildSpec
    from bedplate.host.command import Account, Commands
    from bedplate.model.source_commit import PlanSources

_COPY_TIMEOUT_S = 600.0


def write_source(
    folder: Path,
    spec: BuildSpec,
    sources: PlanSources,
    *,
    release: Path | None,
    account: Account | None,
    commands: Commands,
) -> None:
    """Write the source of `spec` into `folder`, which is made: its commit, else the unpacked `release`, and its patches.

    BuildFailed names the patch that does not apply, with git's own words, or what of the tree cannot be read. RequirementMissing
    where the plan does not say where its tree is.
    """
    if spec.source_commit is not None:
        tree = sources.trees.get(spec.source_commit)
        if tree is None:
            raise RequirementMissing(f"the plan does not say where commit {spec.source_commit} is")
        write_tree(folder, tree, account=account, commands=commands)
    else:
        assert release is not None  # noqa: S101 -- the caller unpacked it
        commands.run(["cp", "-a", "--reflink=auto", str(release), str(folder)], timeout_s=_COPY_TIMEOUT_S)
        give(folder, account)
    for level in spec.patches:
        if level not in sources.patches:
            raise RequirementMissing(f"the plan does not have the patch {level}")
        apply_named(f"patch {level}", sources.patches[level], folder, account=account, commands=commands)
