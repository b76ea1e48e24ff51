"""Files replaced whole or not at all, keeping mode, owner and attributes; links are written through."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import tempfile
from pathlib import Path

IN_PLACE_ERRORS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ETXTBSY})
"""A folder we may not write in, or a file that is itself a mount point: there the file is written in place."""


class FileChangedError(Exception):
    """The file is no longer what was read a moment ago; nothing was written."""


def write_atomically(path: Path, data: bytes, *, expected: bytes | None) -> None:
    """Make `data` the content of `path` (a real path, no link). `expected` is its content now, None for no file.

    Whatever happens, the file holds the old or the new bytes, never a part.

    Raises:
        FileChangedError: somebody else wrote, made or removed it meanwhile.
        OSError: the old content is still there.
    """
    if expected is None:
        _create(path, data)
        return
    status = os.stat(path)
    is_own = status.st_uid == os.geteuid() or os.geteuid() == 0
    if status.st_nlink > 1 or not is_own:
        # A new file would part the hard link, or belong to somebody else.
        _write_in_place(path, data, expected)
        return
    try:
        temporary = _write_temporary(path, data, 0o600)
    except OSError as error:
        if error.errno not in IN_PLACE_ERRORS:
            raise
        _write_in_place(path, data, expected)
        return
    try:
        _copy_attributes(path, temporary, status)
        _check_unchanged(path, expected)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in IN_PLACE_ERRORS:
            _write_in_place(path, data, expected)
            return
        raise
    _sync_folder(path.parent)


def _create(path: Path, data: bytes) -> None:
    # 0666 lets the umask of the user decide, as for any new file.
    temporary = _write_temporary(path, data, 0o666)
    try:
        # `link` fails if the name exists by now, where `rename` would replace what somebody else just made.
        os.link(temporary, path)
    except FileExistsError:
        raise FileChangedError(str(path)) from None
    except OSError:
        if os.path.lexists(path):
            raise FileChangedError(str(path)) from None
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _write_temporary(path: Path, data: bytes, mode: int) -> Path:
    # The name is cut, so that a name of the greatest length still gets a neighbour.
    name = os.fsencode(path.name)[:100]
    temporary = path.parent / os.fsdecode(b"." + name + b"." + secrets.token_hex(6).encode() + b".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return temporary


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_attributes(path: Path, temporary: Path, status: os.stat_result) -> None:
    with contextlib.suppress(PermissionError):
        os.chown(temporary, status.st_uid, status.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(path):
                # Some (security.*) only the system may set.
                with contextlib.suppress(OSError):
                    os.setxattr(temporary, name, os.getxattr(path, name))
    # After chown, which clears the set-id bits.
    os.chmod(temporary, stat.S_IMODE(status.st_mode))


def _check_unchanged(path: Path, expected: bytes) -> None:
    try:
        is_same = path.read_bytes() == expected
    except FileNotFoundError:
        is_same = False
    if not is_same:
        raise FileChangedError(str(path))


def _write_in_place(path: Path, data: bytes, expected: bytes) -> None:
    """Write over the file itself, with a synced copy beside it (or in the temporary folder) until that is done."""
    try:
        backup = _write_temporary(path, expected, 0o600)
    except OSError as error:
        if error.errno not in IN_PLACE_ERRORS:
            raise
        backup = _write_temporary(Path(tempfile.gettempdir()) / path.name, expected, 0o600)
    must_keep_backup = False
    try:
        _check_unchanged(path, expected)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _overwrite(descriptor, data)
        except BaseException:
            must_keep_backup = True
            _overwrite(descriptor, expected)
            must_keep_backup = False
            raise
        finally:
            os.close(descriptor)
    finally:
        if not must_keep_backup:
            backup.unlink(missing_ok=True)


def _overwrite(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write_all(descriptor, data)
    # Cut only now: until here the old blocks are still there to be written back.
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
