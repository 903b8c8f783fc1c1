"""Numbers in the documents about groups, overlays and hosts equal those of the code."""

from __future__ import annotations

import pytest

from beforehand.protocols.epidemic import paced_epidemic, sizes
from beforehand.protocols.epidemic.options import Flow
from beforehand.protocols.mobile.pace import Pace
from beforehand.runtime import config, group, member, members_file, node
from beforehand.runtime.crypto import handshake, merkle, trust
from beforehand.runtime.queues import inbox
from beforehand.runtime.radio import cell_settings, reliable_channel
from beforehand.runtime.storage import event_log, group_commit, store
from beforehand.runtime.transport import mesh, places
from beforehand.runtime.transport.connection import drain, link
from beforehand.runtime.transport.limits import Limits
from tests.conftest import REPO

KIB, MIB = 1 << 10, 1 << 20
WORDS = {0.25: "four times a second", 3: "three times in a row", 60: "a minute", 10: "ten seconds"}
LIMITS = Limits()
QUEUE_MIB = config.QUEUE_BYTES_MAX // MIB
FLOW = Flow()
LATER_MS = [us // 1000 for us in FLOW.announce_us]
DIGEST_SECONDS = [us / 10**6 for us in FLOW.digest_us]

SENTENCES = [
    ("group.md", f"a hash tree over up to {merkle.LEAVES_MAX} messages"),
    ("group.md", f"up to {member.Member.payload_bytes_max:,} bytes; the id"),
    ("group.md", f"clocks further apart than {WORDS[group.SKEW_US // 10**6]} agree"),
    ("group.md", f"(`-wal`, up to {store.LOG_PAGES * store.PAGE_BYTES // 10**6} MB)"),
    (
        "group.md",
        f"takes more than {round(1000 * group_commit.QUICK_SECONDS)} ms, "
        f"{WORDS[group_commit.SLOW_MAX]}",
    ),
    ("group.md", f"| {group.CAPACITY:,}; {group.CAPACITY_BYTES // MIB} MiB |"),
    ("group.md", f"| {FLOW.window:,} | further offers wait"),
    ("group.md", f"wait, up to {FLOW.offers_max:,} of them"),
    ("group.md", f"| {sizes.MESSAGE_BYTES_MAX // KIB} KiB from a peer, "),
    ("group.md", f" {sizes.OWN_BYTES_MAX // KIB} KiB of one's own |"),
    ("group.md", f"or not acknowledged | {inbox.UNREAD_MAX:,} |"),
    (
        "group.md",
        f"| {FLOW.window:,} messages; {QUEUE_MIB // 2} MiB as bytes |",
    ),
    (
        "group.md",
        f"nothing comes of what was asked, not even a part | {FLOW.stall_us // 10**6} s |",
    ),
    ("group.md", f"the disk has not seen | {node.AHEAD_BYTES_MAX // MIB} MiB |"),
    ("group.md", f"| lifetime | {group.LONGEST_US // 86_400_000_000} days |"),
    ("group.md", f"to a peer for which {FLOW.pushes_max} frames wait"),
    ("group.md", f"its peers {LATER_MS[0]} to {LATER_MS[1]} ms later"),
    (
        "group.md",
        f"got announcements of {paced_epidemic.DIGEST_AFTER} messages of an origin",
    ),
    ("group.md", "{} to {} s later".format(*DIGEST_SECONDS)),
    ("group.md", f"no longer than {round(1000 * group_commit.PAUSE_SECONDS_MAX)} ms"),
    ("group.md", f"if there are {group_commit.PAUSE_ROWS} rows or {merkle.LEAVES_MAX} messages"),
    ("group.md", f"the last {mesh.DISCONNECTS_MAX} connections"),
    (
        "security.md",
        f"carries up to {merkle.HEAD_BYTES + merkle.HASH_BYTES * merkle.DEPTH_MAX} bytes more",
    ),
    ("security.md", f"A message carries {trust.PROOF_HEAD_BYTES} bytes of proof"),
    ("security.md", f"up to {trust.NAMES_MAX:,} names"),
    (
        "security.md",
        f"listener cookie {handshake.COOKIE_BYTES} bytes",
    ),
    ("wire.md", f"zeros up to {handshake.INTRODUCTION_BYTES} bytes"),
    ("wire.md", f"it has at most {link.FIRST_RECORD_BYTES_MAX:,}. Its content"),
    ("wire.md", f"nothing for {LIMITS.silence_seconds:.0f} s ends the link"),
    ("security.md", f"{handshake.HELLO_BYTES} bytes; Noise NNpsk0"),
    ("security.md", f"{handshake.ANSWER_BYTES} bytes; its second message"),
    ("security.md", f"padded to {handshake.INTRODUCTION_BYTES} bytes"),
    ("security.md", f"can look at {handshake.HELLO_BYTES} bytes"),
    (
        "security.md",
        "a random {:.0f} to {:.0f} s".format(*drain.DRAIN_SECONDS),
    ),
    ("security.md", f"at most {places.DRAINING_MAX} of them"),
    ("security.md", f"`frame_bytes_max` | {LIMITS.frame_bytes_max // MIB} MiB |"),
    (
        "security.md",
        f"| {LIMITS.queue_bytes_max // MIB} MiB for one peer; {QUEUE_MIB} MiB for",
    ),
    ("security.md", f"`connections_max` | {LIMITS.connections_max} links |"),
    ("security.md", f"`connections_per_address_max` | {LIMITS.connections_per_address_max}, from"),
    ("security.md", f"`handshakes_max` | {LIMITS.handshakes_max} that"),
    ("security.md", f"`handshake_seconds` | {LIMITS.handshake_seconds:.0f} s |"),
    ("security.md", f"`heartbeat_seconds` | {LIMITS.heartbeat_seconds:.0f} s |"),
    ("security.md", f"`silence_seconds` | {LIMITS.silence_seconds:.0f} s |"),
    ("security.md", f"`frames_per_second_max` | {LIMITS.frames_per_second_max:,}, mean over 2 s |"),
    ("security.md", f"| {LIMITS.backoff_min_seconds} s, {LIMITS.backoff_max_seconds:.0f} s |"),
    (
        "security.md",
        ", ".join(f"`{kind}`" for kind in mesh.SHUNNED[:3]) + f" or `{mesh.SHUNNED[3]}`",
    ),
    ("sockets.md", f"At most {members_file.MEMBERS_MAX} members"),
    ("sockets.md", f"From {inbox.UNREAD_MAX:,} unread messages on"),
    ("sockets.md", f"after {node.UNREAD_SECONDS:.0f} seconds of that"),
    ("sockets.md", f"A station says {WORDS[cell_settings.BEACON_SECONDS]}"),
    ("sockets.md", f"has not heard it for {cell_settings.LOST_SECONDS} seconds"),
    (
        "sockets.md",
        f"one of the last {WORDS[cell_settings.TICKS_MAX * cell_settings.BEACON_SECONDS]}",
    ),
    ("sockets.md", f"has at most {cell_settings.PAYLOAD_BYTES_MAX:,} bytes"),
    ("sockets.md", f"names have at most {cell_settings.NAME_BYTES_MAX} bytes"),
    ("verify.md", f"A roster has at most {event_log.ROSTER_MAX:,} names"),
    ("sockets.md", f"frame by radio has at most {cell_settings.FRAME_BYTES_MAX:,} bytes"),
    ("sockets.md", f"send it on: at most {cell_settings.MESSAGE_BYTES_MAX:,} bytes"),
    ("sockets.md", f"up to {reliable_channel.WIRE_BYTES_MAX // MIB} MiB; beyond that"),
    ("sockets.md", f"at most {Pace().inflight_max} messages ahead"),
    ("sockets.md", f"silent for {WORDS[cell_settings.PACE.silence_us // 10**6]} while it owes"),
]


@pytest.mark.parametrize(("document", "sentence"), SENTENCES)
def test_a_number_in_a_document_is_that_of_the_code(document, sentence):
    text = " ".join((REPO / "docs" / document).read_text().split())
    assert sentence in text
