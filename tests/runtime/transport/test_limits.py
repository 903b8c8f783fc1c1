"""Limits and addresses: invalid values are refused before anything starts."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.runtime.transport.address import Address, limit_key
from beforehand.runtime.transport.limits import Limits


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"connections_max": 0}, "`connections_max` is not above 0"),
        ({"heartbeat_seconds": -1.0}, "`heartbeat_seconds` is not above 0"),
        ({"silence_seconds": float("nan")}, "`silence_seconds` is not above 0"),
        ({"heartbeat_seconds": 15.0}, "less than two heartbeats"),
        ({"frame_bytes_max": 1 << 24}, "does not fit into a queue"),
        ({"backoff_min_seconds": 60.0}, "below backoff_min_seconds"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(options, problem):
    with pytest.raises(InputError, match=problem):
        Limits(**options)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7400", "127.0.0.1", 7400),
        ("boat.local:0", "boat.local", 0),
        ("[::1]:7400", "::1", 7400),
        ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
        (":7400", "", 7400),
    ],
)
def test_an_address_is_read_as_it_is_written(text, host, port):
    assert Address.parse(text) == Address(host, port)
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "host", "host:", "host:x", "::1:7400", "[::1]", "host:65536", "h:-1", "h:٣", "[:1"]
)
def test_an_invalid_address_is_refused(text):
    with pytest.raises(InputError):
        Address.parse(text)


def test_a_whole_ipv6_network_counts_as_one_address():
    assert limit_key("2001:db8::1") == limit_key("2001:db8::ffff:2")
    assert limit_key("2001:db8::1") != limit_key("2001:db8:0:1::1")
    assert limit_key("fe80::1%eth0") == limit_key("fe80::2%eth0")
    assert limit_key("::ffff:192.0.2.1") == limit_key("192.0.2.1")
    assert limit_key("192.0.2.1") != limit_key("192.0.2.2")
    assert limit_key("no address") == "no address"
