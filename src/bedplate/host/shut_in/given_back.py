"""What programs of others wrote becomes root's: after their end, and before root does anything with it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bedplate.errors import VerifyFailed


def own_alone(top: Path, place: Path) -> None:
    """Give everything below `top` to root, and take away the right to run as its owner; `place` below it is to be there itself.

    VerifyFailed where one of the folders on the way to `place` is a link, or something in it is neither file, folder nor link: what
    is moved or opened next would be something else. The caller has made sure that nobody can write there any more.
    """
    for folder in (*reversed([each for each in place.parents if top in (each, *each.parents)]), place):
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise VerifyFailed(f"{folder} is no folder after the build, which was to write below it")
    os.chown(top, 0, 0)
    for where, folders, names in os.walk(top):
        for name in (*folders, *names):
            path = Path(where, name)
            mode = os.lstat(path).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                raise VerifyFailed(
                    f"{path} is neither a file nor a folder; a build has none of these to install"
                )
            os.chown(path, 0, 0, follow_symlinks=False)
            if mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & 0o777)
