"""The errors of `audit`, one tree with its own root, because `audit` imports no sibling package.

Owns: which class means what, and the exit code of each. A command boundary maps `AuditError.exit_code` and prints the
message, which reads "subject: what is wrong; what to do". Refuses to guess whether an effect happened: a class that
leaves it open says so (I8).

    AuditError                     1
    +-- BadKey                     2   a part of a key has no allowed form
    +-- BadDeclaration             2   a limit, a tool or an option contradicts itself
    +-- AuditMissing              10   no audit file there, and this call creates none
    +-- AuditIncompatible         12   file of a newer schema, on a network file system, or a key that is not its own
    +-- AuditUnavailable           1   locked, full, read-only or corrupt; nothing was recorded
    +-- ClockJumped                1   a jump of the wall clock waits for a person
"""

__all__ = [
    "AuditError",
    "AuditIncompatible",
    "AuditMissing",
    "AuditUnavailable",
    "BadDeclaration",
    "BadKey",
    "ClockJumped",
]


class AuditError(Exception):
    """Root of every error that `audit` raises on purpose."""

    exit_code = 1


class BadKey(AuditError):
    """A part of a key is not of its form. It is refused, never cleaned up: two cleaned keys could become one."""

    exit_code = 2


class BadDeclaration(AuditError):
    """A limit, a tool or an option contradicts itself; found when it is declared, before anything ran."""

    exit_code = 2


class AuditMissing(AuditError):
    """There is no audit file in the folder, and a reading call does not make one."""

    exit_code = 10


class AuditIncompatible(AuditError):
    """The file needs a newer program, other keys, or another file system. Nothing was read or written."""

    exit_code = 12


class AuditUnavailable(AuditError):
    """The store could not commit: locked, full, read-only or damaged. The transaction left nothing behind."""


class ClockJumped(AuditError):
    """The wall clock jumped within one boot and nobody accepted it yet; what depends on age is refused meanwhile."""
