"""The patches of planted defects: each says what is wrong and which net finds it, and fits."""

import pytest
from rich.console import Console

from tests.mutants.__main__ import table_of
from tests.mutants.planting import (
    ROOT,
    Mutant,
    Verdict,
    all_mutants,
    read_mutant,
    still_applies,
    try_out,
)

MUTANTS = all_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_defect_still_fits_the_source(mutant):
    assert still_applies(mutant)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_net_of_a_planted_defect_is_there(mutant):
    files = [part.partition("::")[0] for part in mutant.net if part.startswith("tests/")]
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_a_patch_without_a_net_is_refused(tmp_path):
    patch = tmp_path / "X1.patch"
    patch.write_text("# X1: something\n")
    with pytest.raises(ValueError, match="net"):
        read_mutant(patch)


def planted(folder, test: str):
    """What comes of a defect in a project of its own that has this one test."""
    (folder / "code.py").write_text("ANSWER = 42\n")
    (folder / "test_code.py").write_text(test)
    (folder / "X1.patch").write_text(
        "# X1: another answer\n# net: test_code.py\ndiff --git a/code.py b/code.py\n"
        "--- a/code.py\n+++ b/code.py\n@@ -1 +1 @@\n-ANSWER = 42\n+ANSWER = 41\n"
    )
    return try_out(read_mutant(folder / "X1.patch"), folder)


@pytest.mark.parametrize(
    ("test", "is_caught", "said"),
    [
        ("def test_it():\n    assert 'ANSWER = 42' in open('code.py').read()\n", True, "FAILED"),
        ("def test_it():\n    assert open('code.py').read()\n", False, "1 passed"),
        ("def test_it():\n    assert False\n", False, "fails without the defect, too: FAILED"),
        ("import nothing_like_it\n", False, ""),
        ("", False, "no tests ran"),
    ],
)
def test_a_defect_is_caught_by_a_test_that_fails_only_with_it(tmp_path, test, is_caught, said):
    verdict = planted(tmp_path, test)
    assert (verdict.is_caught, said in verdict.detail) == (is_caught, True), verdict
    assert (tmp_path / "code.py").read_text() == "ANSWER = 42\n"


def test_whatever_a_test_is_called_stands_in_the_table(tmp_path, capsys):
    mutant = Mutant(tmp_path / "X.patch", "what [is] wrong", ("tests", "-k", "a[/b]"))
    Console(width=160).print(table_of([(mutant, Verdict(True, 1.0, "FAILED t[/two]"))]))
    said = capsys.readouterr().out
    assert all(each in said for each in ("what [is] wrong", "a[/b]", "FAILED t[/two]"))
