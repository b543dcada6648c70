"""Landlock by ctypes: takes from this process every right to change a file system, but below named folders.

For the whole life of the process and of its children; open descriptors keep their rights. Linux only, since 6.2 (ABI 3,
the first that covers truncation). Must run before any other thread exists: it confines the calling thread and those it
starts. Source: Linux Documentation/userspace-api/landlock.rst, include/uapi/linux/landlock.h.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from search.errors import GroundedError

__all__ = ["abi", "deny_writes_outside"]

# The same number on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVS: Final = 38
_LEAST_ABI: Final = 3
# LANDLOCK_ACCESS_FS_*: WRITE_FILE, then REMOVE_DIR to MAKE_SYM, REFER (ABI 2), TRUNCATE (ABI 3). Reading stays free.
_WRITES: Final = 1 << 1 | sum(1 << bit for bit in range(4, 15))


def abi() -> int:
    """Return the kernel's Landlock version; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)), 0)


def deny_writes_outside(folders: Sequence[Path]) -> None:
    """Let this process change nothing but what lies below ``folders``, which must exist. Cannot be taken back.

    Raises ``GroundedError`` where the kernel cannot do it; then nothing is denied.
    """
    found = abi()
    if found < _LEAST_ABI:
        raise GroundedError(
            f"strict mode: needs Linux with Landlock ABI {_LEAST_ABI}, found {found or 'none'}; "
            "start without --strict, or on another machine"
        )
    handled = ctypes.create_string_buffer(struct.pack("=Q", _WRITES), 8)
    ruleset = _checked(_call(_CREATE_RULESET, handled, ctypes.c_size_t(8), ctypes.c_uint32(0)))
    try:
        for folder in folders:
            below = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                # struct landlock_path_beneath_attr is packed: 8 bytes of rights, 4 of descriptor.
                rule = ctypes.create_string_buffer(struct.pack("=Qi", _WRITES, below), 12)
                _checked(_call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0)))
            finally:
                os.close(below)
        _checked(ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


def _call(number: int, *arguments: object) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    return result


def _checked(result: int) -> int:
    if result < 0:
        reason = os.strerror(ctypes.get_errno())
        raise GroundedError(f"strict mode: the kernel refused it ({reason}); start without --strict")
    return result
