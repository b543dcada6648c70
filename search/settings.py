"""Settings: flag > environment > config file > default. Only this module reads the environment or current folder.

Every setting has one name everywhere: ``max_file_bytes`` in the config file, ``GROUNDED_MAX_FILE_BYTES`` in the
environment, a flag where a command offers one. An unknown key or ``GROUNDED_`` name is a usage error, since a misspelt
setting that is silently ignored is worse than none. Secrets come from the environment alone and are never printed.
Paths are resolved here, once.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_origin, get_type_hints

from .errors import UsageError

__all__ = ["CONFIG_FILE", "HOME", "Settings", "cache_folder", "failpoint", "find_home", "load", "secret"]

PREFIX = "GROUNDED_"
HOME = ".grounded"
CONFIG_FILE = "config.toml"

# Names of the environment that are no settings: where to find them, secrets, and hooks of the tests.
SECRETS = frozenset({"PDF_PASSWORDS", "QDRANT_API_KEY", "TOKEN"})
OTHER_NAMES = frozenset({"CONFIG", "FAILPOINT", "INDEX", "QDRANT_URL"}) | SECRETS

DEFAULT_MODEL = "all-MiniLM-L6-v2-int8"


def setting(default: object, text: str) -> Any:  # as dataclasses.field: the field's type decides
    """Declare a setting: its default, and the sentence that explains it."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, resolved. ``origins`` says for each whether it came from flag, environment, config or default."""

    home: Path
    config: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict, repr=False)

    model: str = setting(DEFAULT_MODEL, "embedding model: the bundled one, a fastembed name, or a local folder")
    language: str = setting("english", "language of stemming and stop words of the BM25 encoder")
    chunk_tokens: int = setting(0, "most tokens of a chunk; 0 takes what suits the model")

    workers: int = setting(0, "processes that parse; 0 takes one per core, at most 4")
    embed_threads: int = setting(0, "threads of the embedding model; 0 takes one per core")
    include: tuple[str, ...] = setting((), "only sources that match one of these patterns (.gitignore syntax)")
    exclude: tuple[str, ...] = setting((), "no sources that match one of these patterns (.gitignore syntax)")
    hidden: bool = setting(False, "read files and folders whose name begins with a dot")
    follow_symlinks: bool = setting(False, "follow symbolic links to targets under a root or in link_targets")
    link_targets: tuple[str, ...] = setting((), "folders that symbolic links may lead to")
    use_gitignore: bool = setting(True, "leave out what .gitignore files name")
    change_detection: str = setting("stat", "stat, stat-no-inode (network and FUSE file systems) or hash")
    max_file_bytes: int = setting(100 * 2**20, "largest file that is read")
    max_text_file_bytes: int = setting(20 * 2**20, "largest file of a text kind that is read")
    max_document_chars: int = setting(64 * 2**20, "longest document text")
    fallback_encoding: str = setting("cp1252", "encoding of a text that nothing else tells")
    pdf_engine: str = setting("auto", "auto, pypdf or pypdfium2")
    ocr: bool = setting(False, "read PDF pages without text from their pictures; needs the extra ocr, 5 s a page")
    free_space_margin_bytes: int = setting(200 * 2**20, "what a publish leaves free on the disk, beyond its own needs")
    guard_sources: int = setting(20, "removals of more sources than this, and of more than guard_share, are withheld")
    guard_share: float = setting(0.30, "share of a root's sources, with guard_sources")
    watch_settle_s: float = setting(1.0, "--watch: seconds without a change before a run begins")
    watch_interval_s: float = setting(10.0, "--watch: least seconds from one publish to the next run")
    watch_sweep_s: float = setting(600.0, "--watch: seconds after which a run looks though no change was told")

    limit: int = setting(5, "passages that a search returns")
    relevance_floor: float = setting(0.25, "a search whose best passage scores below this says no_match")
    passage_chars: int = setting(2_000, "most characters of one passage that an agent gets")
    answer_chars: int = setting(12_000, "most characters of all passages of one answer to an agent, up to 40,000")
    channel_chars: int = setting(24_000, "most characters of an answer's text, and of its JSON, as an agent gets them")
    query_cache: int = setting(256, "query vectors that a process keeps")

    def describe(self) -> list[dict[str, object]]:
        """Return name, value, origin and explanation of every setting, in order of declaration. Does not write."""
        rows: list[dict[str, object]] = [
            {"name": "index", "value": str(self.home), "origin": self.origins.get("index", "default"), "help": "folder"}
        ]
        for item in fields(self):
            if "help" in item.metadata:
                value = getattr(self, item.name)
                rows.append(
                    {
                        "name": item.name,
                        "value": list(value) if isinstance(value, tuple) else value,
                        "origin": self.origins.get(item.name, "default"),
                        "help": item.metadata["help"],
                    }
                )
        for name in sorted(SECRETS):
            known = "set" if os.environ.get(PREFIX + name) else "not set"
            rows.append({"name": name.lower(), "value": known, "origin": "environment", "help": "secret"})
        return rows


CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"change_detection": ("stat", "stat-no-inode", "hash"), "pdf_engine": ("auto", "pypdf", "pypdfium2")}
)
# Lowest value of a number; settings not named here start at 0.
LEAST: Mapping[str, int] = MappingProxyType({"limit": 1, "max_file_bytes": 1, "max_text_file_bytes": 1})


def load(flags: Mapping[str, object], *, index: str | None = None, config: str | None = None) -> Settings:
    """Resolve all settings. ``flags`` holds what was really given on the command line, by setting name. Does not write.

    Raises ``UsageError`` for unknown names, for values that do not fit, and for a config file that cannot be read.
    """
    environment = _environment()
    home, home_origin = find_home(index)
    config_path = _config_path(config, home)
    from_file = _read_config(config_path) if config_path is not None else {}
    types = {name: kind for name, kind in get_type_hints(Settings).items() if _is_setting(name)}

    values: dict[str, Any] = {}
    origins = {"index": home_origin}
    for name, kind in types.items():
        if name in flags and flags[name] is not None:
            values[name], origins[name] = _fit(name, flags[name], kind, f"--{name.replace('_', '-')}"), "flag"
        elif name in environment:
            variable = PREFIX + name.upper()
            values[name], origins[name] = _parse(name, environment[name], kind, variable), "environment"
        elif name in from_file:
            values[name], origins[name] = _fit(name, from_file[name], kind, f"{config_path}: {name}"), "config"
    return Settings(home=home, config=config_path, origins=MappingProxyType(origins), **values)


def find_home(index: str | None) -> tuple[Path, str]:
    """Return the ``.grounded`` folder and where its name came from; the folder need not exist. Does not write.

    The flag, else ``GROUNDED_INDEX``, else the nearest ``.grounded`` upwards, else ``./.grounded``.
    """
    if index is not None:
        return Path(index).expanduser().resolve(), "flag"
    named = os.environ.get(PREFIX + "INDEX")
    if named:
        return Path(named).expanduser().resolve(), "environment"
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / HOME).is_dir():
            return folder / HOME, "default" if folder == here else "found upwards"
    return here / HOME, "default"


def secret(name: str) -> str | None:
    """Return a secret of the environment, such as ``TOKEN``, or None. The value never enters settings or logs."""
    if name not in SECRETS:
        raise ValueError(f"{name} is not declared as a secret")
    return os.environ.get(PREFIX + name) or None


def failpoint() -> str | None:
    """Return the point at which a test wants this process killed (``GROUNDED_FAILPOINT``), or None."""
    return os.environ.get(PREFIX + "FAILPOINT") or None


def cache_folder() -> Path:
    """Return the user's cache folder for derived files that may be deleted at any time. Makes nothing."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "grounded-ingest"


def _is_setting(name: str) -> bool:
    return any(item.name == name and "help" in item.metadata for item in fields(Settings))


def _environment() -> dict[str, str]:
    found: dict[str, str] = {}
    for variable, value in os.environ.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX)
        if name in OTHER_NAMES:
            continue
        if not _is_setting(name.lower()):
            raise UsageError(f"{variable}: no such setting; `ingest status` lists them. Unset it or correct its name")
        found[name.lower()] = value
    return found


def _config_path(config: str | None, home: Path) -> Path | None:
    named = config or os.environ.get(PREFIX + "CONFIG")
    if named:
        return Path(named).expanduser().resolve()
    usual = home / CONFIG_FILE
    return usual if usual.is_file() else None


def _read_config(path: Path) -> Mapping[str, object]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"config {path}: cannot be read ({error}); correct it or leave --config out") from error
    for name in values:
        if not _is_setting(name):
            raise UsageError(f"config {path}: no setting is called {name!r}; `ingest status` lists them")
    return values


def _parse(name: str, text: str, kind: object, origin: str) -> object:
    """Turn the text of an environment variable into a value; lists are separated by ``:`` as in PATH."""
    if kind is bool:
        words = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        if text.lower() not in words:
            raise UsageError(f"{origin}: {text!r} is neither true nor false")
        return words[text.lower()]
    if kind in {int, float}:
        try:
            return _fit(name, int(text) if kind is int else float(text), kind, origin)
        except ValueError:
            raise UsageError(f"{origin}: {text!r} is not a number") from None
    if get_origin(kind) is tuple:
        return tuple(part for part in text.split(":") if part)
    return _fit(name, text, kind, origin)


def _fit(name: str, value: object, kind: object, origin: str) -> object:
    """Check a value of a flag or of the config file against the setting's type."""
    if get_origin(kind) is tuple:
        if isinstance(value, list | tuple) and all(isinstance(item, get_args(kind)[0]) for item in value):
            return tuple(value)
        raise UsageError(f"{origin}: must be a list of texts")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(kind, type) or not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"{origin}: {value!r} is of the wrong type; {getattr(kind, '__name__', kind)} is expected")
    if name in CHOICES and value not in CHOICES[name]:
        raise UsageError(f"{origin}: {value!r} is not one of {', '.join(CHOICES[name])}")
    if isinstance(value, int | float) and not isinstance(value, bool) and not value >= LEAST.get(name, 0):
        raise UsageError(f"{origin}: {value} is below {LEAST.get(name, 0)}")
    return value
