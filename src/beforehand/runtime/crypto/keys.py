"""The shared secret of a group, and the Ed25519 key pair of a member."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import stat
import time
from pathlib import Path

import msgspec
from nacl import bindings

from beforehand.errors import InputError, LocalError
from beforehand.files import replaced, unreadable
from beforehand.protocols.contract.base import NAME_CHARS_MAX

SECRET_BYTES = 32
SEED_BYTES = 32
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64

FILE_VERSION = 2
"""Version 1 had one secret, and can be read."""
SECRETS_MAX = 3
"""Secrets that a key has: the newest, and those before it."""
ID_BYTES = 4
FILE_BYTES_MAX = 4096
INVITE_PREFIX = "beforehand1-"
CHECKSUM_BYTES = 6
NOT_A_KEY = "`beforehand group new NAME` makes a key file, `beforehand group join` takes an invite"


def flaw_of_name(name: object) -> str:
    """Return why `name` cannot name a group or a member, or an empty string if it can.

    Names are printed on terminals, so they must not contain control characters.
    """
    if not isinstance(name, str):
        return f"a name is text, and not {type(name).__name__}"
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        return f"a name has 1 to {NAME_CHARS_MAX} characters, not {len(name)}"
    if not name.isprintable() or name != name.strip():
        return "a name has no control characters, and no space at its ends"
    return ""


class GroupSecret(msgspec.Struct, frozen=True):
    """One secret of a group. A group has several while its members change to a new one."""

    secret: bytes
    made_us: int
    """Time of making in microseconds, on the clock of the machine that made it."""
    ends_us: int | None = None
    """From this time on members refuse links under it; None for the newest secret."""

    @property
    def id(self) -> str:
        """A short name that does not reveal the secret."""
        return hashlib.blake2b(self.secret, digest_size=ID_BYTES, person=b"secret id").hexdigest()

    def __repr__(self) -> str:
        return f"GroupSecret({self.id}, made_us={self.made_us}, ends_us={self.ends_us})"


class _SavedSecret(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    secret: bytes
    made_us: int
    ends_us: int | None


class _KeyFile(msgspec.Struct, forbid_unknown_fields=True):
    beforehand_group_key: int
    name: str
    secrets: list[_SavedSecret]


class _FirstKeyFile(msgspec.Struct, forbid_unknown_fields=True):
    beforehand_group_key: int
    name: str
    secret: bytes


class _FileVersion(msgspec.Struct):
    beforehand_group_key: int


class GroupKey(msgspec.Struct, frozen=True):
    """The name and the shared secrets of a group.

    Every process that holds the newest secret is a member: it can dial, be dialed, read and
    broadcast. A holder of an older one is a member until that one ends.
    """

    name: str
    secret: bytes
    """The newest secret."""
    made_us: int = 0
    older: tuple[GroupSecret, ...] = ()
    """The secrets before it, the newest first."""

    def __post_init__(self) -> None:
        if flaw := flaw_of_name(self.name):
            raise InputError(f"no name for a group: {flaw}", hint="choose another name")
        if len(self.secret) != SECRET_BYTES:
            raise InputError(f"a secret has {SECRET_BYTES} bytes, not {len(self.secret)}")

    @property
    def newest(self) -> GroupSecret:
        return GroupSecret(self.secret, self.made_us)

    def live(self, now_us: int) -> list[GroupSecret]:
        """Return the secrets that are valid at this time, the newest first."""
        return [self.newest, *(old for old in self.older if (old.ends_us or 0) > now_us)]

    def ended(self, now_us: int) -> list[GroupSecret]:
        """Return the secrets that are known and have ended."""
        return [old for old in self.older if (old.ends_us or 0) <= now_us]

    def __repr__(self) -> str:
        return f"GroupKey({self.name!r}, secret=<hidden>)"

    @classmethod
    def read(cls, path: Path) -> GroupKey:
        """Read a key file.

        Raise `InputError` if it is not a key file, or if other users can read it.
        """
        content = _read_private(path)
        try:
            return _decode_file(content)
        except (msgspec.MsgspecError, ValueError) as error:  # ValueError: not UTF-8
            problem = f"not a group's key: {error}"
            raise InputError(problem, where=str(path), hint=NOT_A_KEY) from error
        except InputError as error:
            hint = error.hint or NOT_A_KEY
            raise InputError(error.problem, where=str(path), hint=hint) from error

    def write(self, path: Path, *, replace: bool = False) -> None:
        """Write the key file atomically, with mode 0600.

        Raise `InputError` if a file is already there, unless `replace` is true.
        """
        if not replace and os.path.lexists(path):
            hint = "choose another name; `beforehand group rotate` changes a key in its place"
            raise InputError("a file is there already", where=str(path), hint=hint)
        saved = [
            _SavedSecret(one.id, one.secret, one.made_us, one.ends_us)
            for one in (self.newest, *self.older)
        ]
        content = msgspec.json.encode(_KeyFile(FILE_VERSION, self.name, saved)) + b"\n"
        with replaced(path) as partial:
            # Create it with mode 0600: a chmod after writing would leave the secret readable
            # meanwhile.
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(descriptor)

    def invite(self) -> str:
        """Return name and newest secret as one word, to be passed on over a confidential
        channel."""
        content = msgspec.msgpack.encode((self.name, self.secret, self.made_us))
        checked = content + _checksum(content)
        return INVITE_PREFIX + base64.urlsafe_b64encode(checked).decode().rstrip("=")

    @classmethod
    def from_invite(cls, text: str) -> GroupKey:
        """Return the key that an invite contains.

        Raise `InputError` if the text is no invite, or is truncated or mistyped (it has a
        checksum).
        """
        word = "".join(text.split())  # a mail client may have broken it into lines
        hint = "copy the whole word that `beforehand group invite` printed"
        if not word.startswith(INVITE_PREFIX):
            raise InputError("not an invite", where="the invite", hint=hint)
        encoded = word.removeprefix(INVITE_PREFIX)
        try:
            checked = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise InputError("not an invite", where="the invite", hint=hint) from error
        if base64.urlsafe_b64encode(checked).decode().rstrip("=") != encoded:
            # Reject non-canonical base64, in which unused trailing bits are set.
            checked = b""
        content, checksum = checked[:-CHECKSUM_BYTES], checked[-CHECKSUM_BYTES:]
        if checksum != _checksum(content):
            problem = "the invite was cut short, or has a typing error"
            raise InputError(problem, where="the invite", hint=hint)
        try:
            name, secret, made_us = msgspec.msgpack.decode(content, type=tuple[str, bytes, int])
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError("not an invite", where="the invite", hint=hint) from error
        return cls(name, secret, made_us)

    def rotate(self, overlap_us: int = 0, *, is_quiet: bool = False) -> GroupKey:
        """Return a key with the same name and a new secret.

        overlap_us: how long members with the present secret are still accepted. Without an overlap
            they are excluded at once.
        is_quiet: forget the secrets that end now. Otherwise the key knows them, so that nodes can
            tell a member that is late.
        """
        new = new_group(self.name)
        ends_us = new.made_us + overlap_us
        older = [
            GroupSecret(one.secret, one.made_us, min(one.ends_us or ends_us, ends_us))
            for one in (self.newest, *self.older)
        ]
        if is_quiet:
            older = [one for one in older if (one.ends_us or 0) > new.made_us]
        return msgspec.structs.replace(new, older=tuple(older[: SECRETS_MAX - 1]))


def new_group(name: str) -> GroupKey:
    """Return a key with a fresh random secret."""
    return GroupKey(name, secrets.token_bytes(SECRET_BYTES), time.time_ns() // 1000)


def read_public(text: object) -> bytes:
    """Return a member's public key from its hexadecimal digits; raise `InputError` for others."""
    try:
        public = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        public = b""
    if len(public) != PUBLIC_BYTES:
        hint = f"it has {2 * PUBLIC_BYTES} hexadecimal digits, as `group.peers` shows them"
        raise InputError(f"not a public key: `{text!r:.80}`", hint=hint)
    return public


class MemberKey:
    """An Ed25519 key pair. `MemberKey(seed)` recreates the pair whose `seed` was saved."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise LocalError(f"the seed of a member's key has {SEED_BYTES} bytes, not {len(seed)}")
        self.seed = seed
        self.public: bytes
        self.public, self._secret = bindings.crypto_sign_seed_keypair(seed)

    def __repr__(self) -> str:
        return f"MemberKey(public={self.public.hex()})"

    def sign(self, data: bytes) -> bytes:
        """Return the 64-byte signature of `data`."""
        return bindings.crypto_sign(data, self._secret)[:SIGNATURE_BYTES]


def new_member() -> MemberKey:
    """Return a fresh random key pair."""
    return MemberKey(secrets.token_bytes(SEED_BYTES))


def _decode_file(content: bytes) -> GroupKey:
    """Return the key in the content of a key file; raise an error if it has none."""
    version = msgspec.json.decode(content, type=_FileVersion).beforehand_group_key
    if version == 1:
        first = msgspec.json.decode(content, type=_FirstKeyFile)
        return GroupKey(first.name, first.secret)
    if version != FILE_VERSION:
        problem = f"a key file of version {version}, not {FILE_VERSION}"
        hint = "it was made by another version of beforehand: use that one, or a new key"
        raise InputError(problem, hint=hint)
    found = msgspec.json.decode(content, type=_KeyFile)
    saved = [GroupSecret(one.secret, one.made_us, one.ends_us) for one in found.secrets]
    if not 1 <= len(saved) <= SECRETS_MAX:
        raise InputError(f"a key has 1 to {SECRETS_MAX} secrets, not {len(saved)}")
    if [one.id for one in saved] != [one.id for one in found.secrets]:
        raise InputError("a secret does not match its id: the file was changed")
    newest, *older = saved
    if newest.ends_us is not None or any(one.ends_us is None for one in older):
        raise InputError("the first secret of a key has no end, and each of the others has one")
    if any(len(one.secret) != SECRET_BYTES for one in older):
        raise InputError(f"a secret has {SECRET_BYTES} bytes")
    return GroupKey(found.name, newest.secret, newest.made_us, tuple(older))


def _checksum(content: bytes) -> bytes:
    """Return the bytes by which `from_invite` detects truncation and typing errors."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES, person=b"invite").digest()


def _read_private(path: Path) -> bytes:
    """Return the content of a file.

    Raise `InputError` if users other than its owner have access to it, or if it cannot be read.
    """
    try:
        # O_NONBLOCK: opening a FIFO without a writer would block for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as opened:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise InputError("not a regular file", where=str(path), hint=NOT_A_KEY)
            if os.name == "posix" and mode & 0o077:
                problem = f"others may use this key: its mode is {stat.S_IMODE(mode):o}"
                hint = f"`chmod 600 {path}`; if others were on this machine, rotate the key"
                raise InputError(problem, where=str(path), hint=hint)
            return opened.read(FILE_BYTES_MAX)
    except OSError as error:
        raise unreadable(path, error, NOT_A_KEY) from error
