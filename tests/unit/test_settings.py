"""Settings: flag, environment, config file, default, in this order; what nobody declared is refused."""

from pathlib import Path

import pytest

from search import settings as settings_module
from search.errors import ExitCode, UsageError
from search.settings import Settings, find_home, load, secret


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An index folder with room for a config file."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def config(home: Path, text: str) -> None:
    """Write the config file that lies in the index folder."""
    (home / "config.toml").write_text(text, encoding="utf-8")


def test_the_nearest_source_of_a_value_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each value says where it came from."""
    config(home, "limit = 7\nworkers = 3\nlanguage = 'german'\n")
    monkeypatch.setenv("GROUNDED_LIMIT", "8")
    monkeypatch.setenv("GROUNDED_WORKERS", "2")
    made = load({"limit": 9, "workers": None}, index=str(home))
    assert (made.limit, made.origins["limit"]) == (9, "flag")
    assert (made.workers, made.origins["workers"]) == (2, "environment")
    assert (made.language, made.origins["language"]) == ("german", "config")
    assert made.guard_share == Settings(home=home).guard_share
    assert "guard_share" not in made.origins


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("yes", True), ("ON", True), ("0", False), ("no", False), ("False", False)]
)
def test_words_for_true_and_false(text: str, value: bool, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As people write them in an environment."""
    monkeypatch.setenv("GROUNDED_HIDDEN", text)
    assert load({}, index=str(home)).hidden is value


def test_lists_are_parted_as_in_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By colons in the environment, as a list in the config file."""
    monkeypatch.setenv("GROUNDED_EXCLUDE", "*.bak:drafts/")
    config(home, 'include = ["*.md"]\n')
    made = load({}, index=str(home))
    assert (made.exclude, made.include) == (("*.bak", "drafts/"), ("*.md",))


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("GROUNDED_LIMITS", "3", "no such setting"),
        ("GROUNDED_LIMIT", "three", "is not a number"),
        ("GROUNDED_LIMIT", "0", "is below 1"),
        ("GROUNDED_WORKERS", "-1", "is below 0"),
        ("GROUNDED_HIDDEN", "maybe", "neither true nor false"),
        ("GROUNDED_PDF_ENGINE", "word", "is not one of auto, pypdf, pypdfium2"),
        ("GROUNDED_GUARD_SHARE", "nan", "is below 0"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(
    variable: str, value: str, named: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt setting that is silently ignored is worse than none."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=named) as refused:
        load({}, index=str(home))
    assert variable in str(refused.value)
    assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("limitt = 3", "no setting is called 'limitt'"),
        ("limit = 'three'", "wrong type"),
        ("limit = true", "wrong type"),
        ("include = '*.md'", "must be a list of texts"),
        ("include = [1]", "must be a list of texts"),
        ("limit = ", "cannot be read"),
    ],
)
def test_a_wrong_config_file_is_refused_by_its_path(text: str, named: str, home: Path) -> None:
    """With the key, or the place where the file cannot be read."""
    config(home, text)
    with pytest.raises(UsageError, match=named) as refused:
        load({}, index=str(home))
    assert str(home / "config.toml") in str(refused.value)


def test_a_whole_number_is_a_share_as_well(home: Path) -> None:
    """``guard_share = 1`` means 1.0."""
    config(home, "guard_share = 1\n")
    assert load({}, index=str(home)).guard_share == 1.0


def test_the_home_is_found_upwards_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flag, then GROUNDED_INDEX, then the nearest folder, then the current one; none is made."""
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_home(None) == (deep / ".grounded", "default")
    (tmp_path / "project" / ".grounded").mkdir()
    assert find_home(None) == (tmp_path / "project" / ".grounded", "found upwards")
    monkeypatch.setenv("GROUNDED_INDEX", str(tmp_path / "named"))
    assert find_home(None) == (tmp_path / "named", "environment")
    assert find_home("x") == (deep / "x", "flag")
    assert not (deep / ".grounded").exists()


def test_secrets_are_shown_as_set_and_never_as_values(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the description, nor in the text of the settings."""
    monkeypatch.setenv("GROUNDED_QDRANT_API_KEY", "swordfish")
    made = load({}, index=str(home))
    rows = {row["name"]: row["value"] for row in made.describe()}
    assert (rows["qdrant_api_key"], rows["token"]) == ("set", "not set")
    assert "swordfish" not in repr(made) + str(made.describe())
    assert secret("QDRANT_API_KEY") == "swordfish"
    assert secret("TOKEN") is None
    with pytest.raises(ValueError, match="not declared"):
        secret("PATH")


def test_every_setting_explains_itself(home: Path) -> None:
    """Each has a sentence, and a least value or a choice only where there is a setting of that name."""
    rows = load({}, index=str(home)).describe()
    assert all(row["help"] for row in rows)
    known = {row["name"] for row in rows}
    assert {*settings_module.CHOICES, *settings_module.LEAST} <= known
