"""The errors of the index and their exit codes: one root, one tree, one code for every leaf.

    GroundedError
    |-- UsageError              2    a flag, a setting or an argument is wrong; nothing was touched
    |-- IndexMissing           10    there is no index, or nothing was ever published in it
    |-- IndexLocked            11    another run holds the writer lock
    |-- RecipeMismatch         12    the index was made by another recipe, model file or schema
    |   |-- ModelMismatch            the model files are not those that the recipe names
    |   `-- SchemaMismatch           the catalog or a generation was written by a newer program
    |-- IndexDamaged            1    files of the index are missing or not what the manifest says
    |-- IndexUnavailable        1    the engine could not answer; trying again may help
    |-- ModelUnavailable        1    the embedding model cannot be loaded here
    |-- NotEnoughSpace          1    the disk is full, or too small for the next generation
    |-- PublishFailed           1    the process that builds a generation died; the old one stands
    `-- Interrupted           130    Ctrl-C or SIGTERM; what was done is kept

A source that cannot be ingested is not an error: it is a failure row of the run, and exit code 3. Two questions choose
the class: would trying again help (``retryable``), and whose is it (input, settings, state, our bug)?
"""

from enum import IntEnum

__all__ = [
    "ExitCode",
    "GroundedError",
    "IndexDamaged",
    "IndexLocked",
    "IndexMissing",
    "IndexUnavailable",
    "Interrupted",
    "ModelMismatch",
    "ModelUnavailable",
    "NotEnoughSpace",
    "PublishFailed",
    "RecipeMismatch",
    "SchemaMismatch",
    "UsageError",
]


class ExitCode(IntEnum):
    """What a command says when it ends. Help and README are generated from the descriptions."""

    description: str

    def __new__(cls, value: int, description: str) -> "ExitCode":
        """Make a member out of its number and the sentence that explains it."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    DONE = 0, "done"
    FAILED = 1, "failed"
    USAGE = 2, "wrong usage: a flag, a setting or an argument"
    SOURCES_FAILED = 3, "done, but some sources failed"
    PROBLEMS_FOUND = 4, "verify found problems"
    REMOVALS_WITHHELD = 5, "done, but removals were withheld by the mass-delete guard"
    NO_INDEX = 10, "no index here"
    LOCKED = 11, "another run holds the index"
    RECIPE_MISMATCH = 12, "the index does not match the settings (recipe) or this program's version"
    INTERRUPTED = 130, "interrupted; what was done is kept"


class GroundedError(Exception):
    """Root of all errors of the index. The message names the subject, what is wrong, and what to do."""

    exit_code: ExitCode = ExitCode.FAILED
    kind: str = "failed"
    retryable: bool = False


class UsageError(GroundedError):
    """A flag, a setting or an argument is wrong."""

    exit_code = ExitCode.USAGE
    kind = "usage"


class IndexMissing(GroundedError):
    """There is no index in the folder, or no generation was ever published."""

    exit_code = ExitCode.NO_INDEX
    kind = "index_missing"


class IndexLocked(GroundedError):
    """Another run holds the writer lock; it says which."""

    exit_code = ExitCode.LOCKED
    kind = "index_locked"
    retryable = True


class RecipeMismatch(GroundedError):
    """The index was made by another recipe."""

    exit_code = ExitCode.RECIPE_MISMATCH
    kind = "recipe_mismatch"


class ModelMismatch(RecipeMismatch):
    """The model files at hand are not those that the recipe names."""

    kind = "model_mismatch"


class SchemaMismatch(RecipeMismatch):
    """A catalog or generation of a format that this program does not read."""

    kind = "schema_mismatch"


class IndexDamaged(GroundedError):
    """Files of the index are missing, or are not what the manifest says."""

    kind = "index_damaged"


class IndexUnavailable(GroundedError):
    """The engine failed while it was asked; the next try may succeed."""

    kind = "index_unavailable"
    retryable = True


class ModelUnavailable(GroundedError):
    """The embedding model cannot be found or loaded on this machine."""

    kind = "model_unavailable"


class NotEnoughSpace(GroundedError):
    """The disk is full, or has too little room for the next generation."""

    kind = "not_enough_space"


class PublishFailed(GroundedError):
    """The process that builds a generation died; the old generation stands."""

    kind = "publish_failed"
    retryable = True


class Interrupted(GroundedError):
    """Ctrl-C or SIGTERM ended the run; what was done is kept."""

    exit_code = ExitCode.INTERRUPTED
    kind = "interrupted"
    retryable = True
