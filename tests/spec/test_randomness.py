"""One module owns randomness: kernel bits, safe after a fork, never pickled, never seeded in a release."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import privcov as pc
import privcov_lab
from privcov.errors import PrivcovError
from privcov.noise.randomness import Randomness, kernel, rehearsal

pytestmark = pytest.mark.kernel

SOURCE = Path(pc.__file__).parent
LABORATORY = Path(privcov_lab.__file__).parent


def words_of_children(source, children):
    """The next words of a source in each of several forked children."""
    found = []
    for _ in range(children):
        end, start = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(start, source.words(4).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        found.append(os.read(end, 32))
        os.close(end)
        os.close(start)
    return found


def test_forked_children_never_share_a_bit_with_each_other_or_the_parent():
    source = kernel()
    source.words(10)  # fills the buffer that a child inherits
    found = words_of_children(source, 64)
    assert len({*found, source.words(4).tobytes()}) == 65


def test_the_fork_check_finds_a_source_without_protection():
    """Canary: a seeded stream repeats itself in every child."""
    assert len(set(words_of_children(rehearsal(1), 4))) == 1


def test_fresh_processes_make_different_releases():
    program = (
        "import numpy as np, privcov as pc\n"
        "s = pc.Schema.from_dict({'columns': {'x': {'lower': 0, 'upper': 1}}})\n"
        "loss = pc.PureDP(epsilon=1, neighbours='replace-one')\n"
        "print(pc.release(np.zeros((3, 1)), schema=s, loss=loss).upper)"
    )
    found = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert len(found) == 2


def test_threads_never_share_a_word():
    source = kernel()
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: source.words(7).tolist(), range(2000)))
    assert len({word for part in parts for word in part}) == 14_000


def test_no_word_is_given_twice_across_refills():
    source = kernel()
    words = np.concatenate([source.words(n) for n in (1, 5000, 3, 8192, 4096, 4097, 2)])
    assert len(set(words.tolist())) == words.size


@pytest.mark.parametrize("source", [kernel(), rehearsal(1)])
def test_a_source_refuses_to_be_pickled(source):
    with pytest.raises(TypeError, match="repeat"):
        pickle.dumps(source)


def test_a_rehearsal_repeats_and_says_so():
    assert rehearsal(5).words(3).tolist() == rehearsal(5).words(3).tolist()
    assert (rehearsal(5).kind, kernel().kind) == ("rehearsal", "kernel")


def test_no_kernel_randomness_means_no_release(monkeypatch):
    def fail(_):
        raise NotImplementedError

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(PrivcovError, match="E501"):
        kernel().words(1)


def test_no_public_function_takes_a_seed():
    for name in pc.__all__:
        thing = getattr(pc, name)
        if callable(thing) and not isinstance(thing, type):
            assert not {"seed", "random_state", "rng"} & set(inspect.signature(thing).parameters)


def test_random_numbers_are_made_in_one_file():
    for path in [*SOURCE.rglob("*.py"), *LABORATORY.rglob("*.py")]:
        if path != SOURCE / "noise" / "randomness.py":
            text = path.read_text()
            for word in ("np.random", "numpy.random", "import random", "import secrets", "urandom"):
                assert word not in text, f"{path.name}: {word}"


def test_idealized_variates_have_their_laws():
    """KS at 1e-6 with 20 000 draws: finds a scale wrong by 5 %."""
    from scipy.stats import ks_1samp, norm, uniform

    source = rehearsal(3)
    assert ks_1samp(source.uniforms(20_000), uniform.cdf).pvalue > 1e-6
    normals = source.normals(20_001)
    assert normals.shape == (20_001,)
    assert ks_1samp(normals, norm.cdf).pvalue > 1e-6
    assert ks_1samp(1.05 * normals, norm.cdf).pvalue < 1e-4


def test_a_bare_source_cannot_be_used_by_accident():
    with pytest.raises(TypeError, match="abstract"):
        Randomness()
