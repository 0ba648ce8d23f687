"""Examples at the end of each command's help; a test parses every one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

# By the command's words.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "quickstart": ("sudo bedplate quickstart", "sudo bedplate quickstart --directory /var/tmp/first --yes"),
    "ask filesystem": ("sudo bedplate ask filesystem", "sudo bedplate ask filesystem --on ext4,xfs"),
    "ask kernel": ("bedplate ask kernel 6.1 6.12 --on ext4",),
    "ask safe": (
        "sudo bedplate ask safe",
        "sudo bedplate ask safe /var/lib/postgresql/18/main",
        "sudo bedplate ask safe full_page_writes=off --on ext4,xfs,btrfs",
    ),
    "ab": (
        "sudo bedplate ab --postgres ~/src/postgres master v3-0001-foo.patch --plan quick",
        "bedplate ab --kernel 6.12 ~/linux/bzImage --on ext4,xfs",
        "sudo bedplate ab --vary barrier=true,false --budget 30min --fail-if 'slower 10%'",
    ),
    "bisect": (
        "sudo bedplate bisect --postgres ~/src/postgres REL_18_0 master --fail-if 'slower 10%'",
        "bedplate bisect --kernel ~/src/linux v7.0 v7.1 --fail-if 'flushes per appending fsync < 1'",
        "bedplate bisect --kernel ~/src/linux v7.0 v7.1 --fail-if unsafe --on ext4",
    ),
    "inspect": (
        "bedplate inspect /var/lib/postgresql/18/main",
        "bedplate inspect /var/lib/mysql",
        "bedplate inspect /dev/sda1 --plan mine.toml",
    ),
    "device measure": (
        "sudo bedplate device measure /dev/disk/by-id/nvme-eui.0025",
        "sudo bedplate device measure /dev/disk/by-id/nvme-eui.0025 --erase /dev/disk/by-id/nvme-eui.0025",
        "bedplate device measure /var/lib/postgresql",
    ),
    "setup": ("sudo bedplate setup", "sudo bedplate setup kernels --kernel 6.12 --zfs --yes"),
    "doctor": ("bedplate doctor", "bedplate doctor --json"),
    "plan": ("bedplate plan quick", "bedplate plan mine.toml --executor qemu"),
    "run": (
        "sudo bedplate run quick --study first",
        "sudo bedplate run mine.toml --study s --erase /dev/disk/by-id/nvme-eui.0025",
        "sudo bedplate run mine.toml --study s --retry-failed",
    ),
    "search": (
        "sudo bedplate search mine.toml --study s --best tps --run read-write --budget 4h",
        "sudo bedplate search mine.toml --study s --best tps --run read-write --not-worse p99:10% --budget 4h",
        "sudo bedplate search mine.toml --study s --budget 6h",
    ),
    "extend": (
        "sudo bedplate extend first --repetitions 5",
        "sudo bedplate extend first --plan with-btrfs.toml",
    ),
    "status": ("bedplate status first", "bedplate status first --verify"),
    "cancel": ("bedplate cancel first",),
    "show": (
        "bedplate show first",
        "bedplate show first --sort tps --top 10 --cells type=ext4,xfs",
        "bedplate show first --workload read-write --metric latency_ms_p99",
    ),
    "compare": (
        "bedplate compare first --baseline type=ext4 --contender type=xfs",
        "bedplate compare first --baseline barrier=yes --contender barrier=no --metric tps --fail-if 'slower 5%'",
    ),
    "effects": ("bedplate effects first", "bedplate effects first --workload read-write --metric tps"),
    "advise": ("bedplate advise first", "bedplate advise first --durability durable --cache protected"),
    "claims": ("bedplate claims first", "bedplate claims first --claims mine.toml"),
    "summary": (
        "bedplate summary first",
        "bedplate summary first --markdown | mail -s first list@example.org",
    ),
    "index": ("bedplate index studies", "bedplate index studies -o /srv/www/bedplate/index.html"),
    "report": ("bedplate report first", "bedplate report first second -o both.html"),
    "export": (
        "bedplate export first -o first.ods",
        "bedplate export first -o tables --format csv --table figures --metric tps",
        "bedplate export warehouse -o plans.parquet --table plans",
    ),
    "import": (
        "bedplate import pg-fs-benchmark/i5 --study i5",
        "bedplate import composite.xml --study phoronix --format phoronix",
    ),
    "power-cut try": (
        "sudo bedplate power-cut try examples/engines/toy --on ext4",
        "sudo bedplate power-cut try ./my-engine --on ext4,xfs,btrfs --points 200 --fail-if bad",
    ),
    "power-cut points": ("bedplate power-cut points cuts", "bedplate power-cut points cuts ext4 --all"),
    "power-cut blame": (
        "sudo bedplate power-cut blame cuts",
        "sudo bedplate power-cut blame cuts ext4 17",
        "bedplate power-cut blame cuts-in-guests --guest",
    ),
    "power-cut bundle": ("sudo bedplate power-cut bundle cuts ext4 17 --output /var/tmp/cut-17-bundle",),
    "power-cut replay": (
        "sudo bedplate power-cut replay cuts ext4 17 --keep /var/tmp/cut-17",
        "sudo bedplate power-cut replay cuts ext4 --profile untorn-16k --points 90",
        "bedplate power-cut replay cuts-in-guests jfs --profile ordered --points 12",
    ),
    "release": ("sudo bedplate release", "bedplate release --cache", "bedplate release --cache --days 0"),
    "completion": (
        "bedplate completion bash > ~/.local/share/bash-completion/completions/bedplate",
        "bedplate completion fish > ~/.config/fish/completions/bedplate.fish",
    ),
}


def add_examples(group: click.Group, before: str = "") -> None:
    """Put the examples at the end of the help of every command of a group; a group within it has the first one of each of its own."""
    for name, command in group.commands.items():
        words = f"{before} {name}".strip()
        inner = getattr(command, "commands", None)
        lines = EXAMPLES.get(words, ())
        if inner is not None:
            add_examples(command, words)  # type: ignore[arg-type]
            lines = tuple(EXAMPLES[f"{words} {own}"][0] for own in inner)
        if lines:
            # Click breaks no line of a paragraph that begins so.
            command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
