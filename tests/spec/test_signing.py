"""Keys sign, signatures bind every byte, and a private key is kept like one."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import stat
import subprocess
import sys

import pytest

import privcov as pc
from privcov.errors import OutputError, ReleaseError, VerificationError
from privcov.releases import keyfiles
from privcov.releases.signing import PrivateKey, PublicKey, check_seal, keygen, seal

# RFC 8032, section 7.1, tests 1 and 2: secret key, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@pytest.fixture
def key():
    return keygen()


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS)
def test_signatures_are_those_of_the_standard(secret, public, message, signature):
    key = PrivateKey(bytes.fromhex(secret))
    assert key.public.raw.hex() == public
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert key.public.verifies(bytes.fromhex(message), bytes.fromhex(signature))


def test_every_bit_of_message_and_signature_counts(key):
    message, signature = b"a release", key.sign(b"a release")
    assert key.public.verifies(message, signature)
    for bit in range(8 * len(signature)):
        changed = bytearray(signature)
        changed[bit // 8] ^= 1 << bit % 8
        assert not key.public.verifies(message, bytes(changed))
    for bit in range(8 * len(message)):
        changed = bytearray(message)
        changed[bit // 8] ^= 1 << bit % 8
        assert not key.public.verifies(bytes(changed), signature)


def test_a_signature_has_one_form_only(key):
    """Adding the order of the group to the second half gives what naive verifiers also accept."""
    signature = key.sign(b"text")
    order = 2**252 + 27742317777372353535851937790883648493
    other = int.from_bytes(signature[32:], "little") + order
    assert not key.public.verifies(b"text", signature[:32] + other.to_bytes(32, "little"))


def test_two_keys_are_two_keys():
    keys = [keygen().public for _ in range(5)]
    assert len({key.raw for key in keys}) == len({key.fingerprint for key in keys}) == 5


def test_a_fingerprint_is_eight_words_of_the_digest():
    """127.0.0.1 is lusab-babad, by the paper that proposed these words."""
    from privcov.releases.signing import _word

    assert f"{_word(bytes([127, 0]))}-{_word(bytes([0, 1]))}" == "lusab-babad"
    assert len({_word(i.to_bytes(2)) for i in range(2**16)}) == 2**16
    key = keygen().public
    digest = hashlib.sha256(key.raw).digest()
    assert key.fingerprint.split("-") == [_word(digest[i : i + 2]) for i in range(0, 16, 2)]


def test_a_private_key_is_never_shown_or_pickled(key):
    secret = key.reveal_to_key_file()
    for shown in (repr(key), str(key), str(vars(key)), repr([key])):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copied(key)


def test_a_digest_and_a_signature_are_told_apart(key):
    assert check_seal(seal(b"text"), b"text", what="release") is None
    assert check_seal(seal(b"text", key), b"text", what="release") == key.public
    with pytest.raises(VerificationError, match="E603"):
        check_seal(seal(b"text"), b"text!", what="release")
    with pytest.raises(VerificationError, match="E605"):
        check_seal(seal(b"text", key), b"text!", what="release")


@pytest.mark.parametrize(
    "change",
    [
        {"value": "AB" * 64},
        {"value": "ab" * 63},
        {"value": None},
        {"key": "ab" * 31},
        {"key": 5},
        {"note": "hello"},
    ],
)
def test_a_malformed_signature_is_refused(key, change):
    with pytest.raises((ReleaseError, ValueError)) as refused:
        check_seal({**seal(b"text", key), **change}, b"text", what="release")
    assert not isinstance(refused.value, VerificationError)


@pytest.mark.parametrize("passphrase", [None, b"correct horse"])
def test_key_files_read_back(tmp_path, key, passphrase):
    private, public = keyfiles.write(tmp_path / "steward", key, passphrase=passphrase)
    assert (private.name, public.name) == ("steward.key", "steward.pub")
    assert keyfiles.read_public(public) == key.public
    assert keyfiles.read_private(private, passphrase=passphrase).public == key.public
    assert private.read_text().startswith("-----BEGIN " + ("ENCRYPTED " if passphrase else "") + "PRIVATE")
    assert public.read_text().startswith("-----BEGIN PUBLIC KEY-----")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_private_key_file_is_readable_by_its_owner_alone_under_every_umask(tmp_path, key, mask):
    before = os.umask(mask)
    try:
        private, _ = keyfiles.write(tmp_path / "steward", key)
    finally:
        os.umask(before)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o660, 0o601])
def test_a_private_key_that_others_can_reach_is_refused(tmp_path, key, mode):
    private, _ = keyfiles.write(tmp_path / "steward", key)
    private.chmod(mode)
    with pytest.raises(ReleaseError, match=r"E608.*chmod 600"):
        keyfiles.read_private(private)


@pytest.mark.parametrize("taken", ["steward.key", "steward.pub"])
@pytest.mark.parametrize("link", [False, True])
def test_a_key_is_never_overwritten_and_never_half_written(tmp_path, key, taken, link):
    if link:
        (tmp_path / taken).symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / taken).write_text("precious")
    with pytest.raises(OutputError, match=r"E401.*never overwritten"):
        keyfiles.write(tmp_path / "steward", key)
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert link or (tmp_path / taken).read_text() == "precious"


def test_a_private_key_without_its_public_half_is_not_left_behind(tmp_path, key, monkeypatch):
    def full(*_, **__):
        raise OutputError("E401", "cannot write: No space left on device.")

    monkeypatch.setattr(keyfiles.files, "write", full)
    with pytest.raises(OutputError):
        keyfiles.write(tmp_path / "steward", key)
    assert list(tmp_path.iterdir()) == []


def test_a_passphrase_is_needed_where_there_is_one_and_refused_where_there_is_none(tmp_path, key):
    locked, public = keyfiles.write(tmp_path / "locked", key, passphrase=b"correct horse")
    open_key, _ = keyfiles.write(tmp_path / "open", key)
    with pytest.raises(ReleaseError, match=r"E608.*needs its passphrase"):
        keyfiles.read_private(locked)
    with pytest.raises(ReleaseError, match=r"E608.*passphrase is wrong"):
        keyfiles.read_private(locked, passphrase=b"battery staple")
    with pytest.raises(ReleaseError, match=r"E608.*not protected"):
        keyfiles.read_private(open_key, passphrase=b"correct horse")
    with pytest.raises(ReleaseError, match="E608"):
        keyfiles.read_public(open_key)
    public.chmod(0o600)
    with pytest.raises(ReleaseError, match="E608"):
        keyfiles.read_private(public)


def test_keys_of_other_kinds_and_other_files_are_refused(tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = other.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for content in (pem, public, b"", b"\xff" * 100, b"-----BEGIN PUBLIC KEY-----\n"):
        path = tmp_path / "other"
        path.write_bytes(content)
        path.chmod(0o600)
        for read in (keyfiles.read_private, keyfiles.read_public):
            with pytest.raises(ReleaseError, match="E608"):
                read(path)
    with pytest.raises(ReleaseError, match="E604"):
        keyfiles.read_public(tmp_path / "missing")


def test_a_public_key_has_32_bytes():
    for raw in (b"", bytes(31), bytes(33), "a" * 32):
        with pytest.raises(ValueError, match="32 bytes"):
            PublicKey(raw)


@pytest.fixture
def without_cryptography(monkeypatch):
    """As if the extra had not been installed."""
    for name in [name for name in sys.modules if name.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)


def test_without_the_extra_unsigned_files_load_and_signed_ones_are_refused(made, tmp_path, request):
    made.save(tmp_path / "plain.json")
    made.save(tmp_path / "signed.json", key=keygen())
    request.getfixturevalue("without_cryptography")
    assert pc.load(tmp_path / "plain.json") == made
    for attempt in (
        lambda: pc.load(tmp_path / "signed.json"),
        lambda: pc.verify(tmp_path / "signed.json"),
        keygen,
    ):
        with pytest.raises(ReleaseError, match=r"E607.*pip install 'privcov\[sign\]'") as refused:
            attempt()
        assert refused.value.exit_code == 2


def test_cryptography_is_imported_only_when_a_key_is_used(made, tmp_path):
    made.save(tmp_path / "plain.json")
    code = (
        "import sys, privcov as pc; pc.load('plain.json'); pc.verify('plain.json'); "
        "assert not any(name.startswith('cryptography') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
