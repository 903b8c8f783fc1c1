"""Ways to break the logs of nodes and the bounds of cells, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

LOG = "src/beforehand/runtime/eventlog.py"
STATION = "src/beforehand/core/mobile/station.py"
ROSTER_TEST = "tests/runtime/test_roster.py"
BOUNDS_TEST = "tests/core/mobile/test_bounds.py"
CELLS_TEST = "tests/runtime/test_cell_bounds.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a log is not told of links",
        "src/beforehand/runtime/meshed.py",
        "                recorder.met(peer)\n",
        "                pass\n",
        f"{ROSTER_TEST}::test_a_missing_log_of_a_member_that_never_spoke_was_valid",
    ),
    (
        "a log of a host is not told of other hosts",
        "src/beforehand/runtime/host.py",
        "            self.on_host(said.sender)\n",
        "            pass\n",
        f"{ROSTER_TEST}::test_a_host_knows_the_hosts_that_it_heard_and_takes_no_station_for_one",
    ),
    (
        "a log of an overlay learns its members",
        "src/beforehand/runtime/member.py",
        "            members=self._all_members(),\n",
        "",
        f"{ROSTER_TEST}::test_an_overlay_knows_all_its_members_from_the_start",
    ),
    (
        "a roster is forgotten in a crash",
        LOG,
        "            self._store.save([(ROSTER.name, member, 1)])\n",
        "",
        f"{ROSTER_TEST}::test_a_roster_survives_a_kill_as_far_as_its_step_was_saved",
    ),
    (
        "a file has the roster of when it is written",
        LOG,
        "self._events[:count], members)",
        "self._events[:count], sorted(self._members))",
        f"{ROSTER_TEST}::test_a_file_does_not_name_a_member_that_a_crash_may_still_undo",
    ),
    (
        "a roster has any number of names",
        LOG,
        "if is_new and len(self._members) < ROSTER_MAX:",
        "if is_new:",
        f"{ROSTER_TEST}::test_invented_names_fill_neither_the_store_nor_the_files",
    ),
    (
        "a roster leaves origins out",
        LOG,
        "            self.met(self._name_of(message[0]))\n",
        "",
        f"{ROSTER_TEST}::test_a_roster_has_links_and_origins_and_itself",
    ),
    (
        "a station of a real cell takes messages of any length",
        "src/beforehand/runtime/station.py",
        "proofs=proofs, message_bytes_max=MESSAGE_BYTES_MAX",
        "proofs=proofs",
        f"{CELLS_TEST}::test_a_say_of_7800_bytes_silenced_the_cells_where_it_did_not_fit",
    ),
    (
        "a station takes messages that fit into no cast",
        STATION,
        "        if not are_short(frame, self._message_bytes_max):\n            return False\n",
        "",
        f"{BOUNDS_TEST}::"
        "test_a_say_that_is_too_long_for_a_cast_is_refused_on_receipt_and_costs_its_host_alone",
    ),
    (
        "a station takes the message of another host",
        STATION,
        "frame.message.origin != frame.host",
        "False",
        f"{BOUNDS_TEST}::test_a_host_that_repeated_the_message_of_another_had_it_delivered_twice",
    ),
    (
        "a station keeps what is any number ahead",
        STATION,
        "if message.seq >= guest.next_said + self._pace.inflight_max:",
        "if False:",
        f"{BOUNDS_TEST}::test_a_host_that_says_numbers_without_end_does_not_fill_its_station",
    ),
    (
        "the bound forgets what a message is caught up in",
        "src/beforehand/core/mobile/bounds.py",
        "        CatchUp(name, name, COUNT_MAX, COUNT_MAX, message),\n",
        "",
        f"{BOUNDS_TEST}::"
        "test_the_longest_message_fits_into_every_radio_frame_and_a_longer_one_does_not",
    ),
    (
        "a host takes what stations refuse",
        "src/beforehand/core/mobile/host.py",
        "        refuse_long(message, self._message_bytes_max)\n",
        "",
        f"{BOUNDS_TEST}::test_a_host_refuses_what_stations_would_refuse_and_loses_no_number",
    ),
    (
        "a host with a name that is too long is heard",
        "src/beforehand/runtime/station.py",
        "        if not is_short(said.sender):\n",
        "        if False:\n",
        f"{CELLS_TEST}::test_a_host_with_a_name_that_is_too_long_by_radio_is_not_heard",
    ),
    (
        "a frame fits without its version",
        "src/beforehand/runtime/cells.py",
        "return VERSION_BYTES + len(",
        "return len(",
        f"{CELLS_TEST}::test_a_frame_that_is_one_byte_too_long_with_its_version_ended_its_host",
    ),
)
