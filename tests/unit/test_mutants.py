"""The patches of planted defects: each says what is wrong and which net finds it, and fits."""

import pytest

from tests.mutants.planting import ROOT, all_mutants, read_mutant, still_applies

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
