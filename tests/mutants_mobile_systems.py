"""Deliberate bugs in what the mobile systems do not share with WAS, each with its killer."""

HANDOFF = "src/beforehand/core/mobile/handoff.py"
GUARD = "src/beforehand/core/mobile/guard.py"
STATION = "src/beforehand/core/mobile/station.py"
HOST = "src/beforehand/core/mobile/host.py"

ON_FLOOD = "tests/core/mobile/test_was_flood.py"
ON_GUARD = "tests/core/mobile/test_guard.py"

MUTANTS = [
    (
        "was_flood: wait for the answers of the neighbours only",
        HANDOFF,
        "[*self._via] if EVERYBODY in targets",
        "[*self._neighbours] if EVERYBODY in targets",
        f"{ON_FLOOD}::test_the_host_is_new_only_after_the_farthest_station_has_answered",
    ),
    (
        "was_flood: who is asked with all others does not pass it on",
        STATION,
        "            if frame.target != self.node:\n",
        "            if frame.target not in (self.node, EVERYBODY):\n",
        f"{ON_FLOOD}::test_a_request_is_answered_and_goes_on_to_all_other_neighbours",
    ),
    (
        "was_flood: flood a frame back to where it came from",
        HANDOFF,
        "for peer in self._neighbours if peer != source]",
        "for peer in self._neighbours]",
        f"{ON_FLOOD}::test_a_delete_takes_effect_here_and_goes_on",
    ),
    (
        "was_flood: delete what was registered in this very connection",
        HANDOFF,
        "            return ((EVERYBODY, frame.ses - 1),)",
        "            return ((EVERYBODY, frame.ses),)",
        f"{ON_FLOOD}::test_a_join_ends_what_earlier_ones_left_behind_anywhere",
    ),
    (
        "was_flood: a host lists stations once it was connected",
        HOST,
        "        if self._names_stations:\n",
        "        if self.cell is not None:\n",
        f"{ON_FLOOD}::test_a_host_names_no_stations_wherever_it_was",
    ),
    (
        "guard: give up on somebody who was just heard",
        GUARD,
        "now_us - guest.heard_us >= at_least_us",
        "at_least_us > 0",
        f"{ON_GUARD}::test_who_was_heard_lately_stays_however_much_is_repeated",
    ),
    (
        "guard: give up on the one that holds up least",
        GUARD,
        "max(silent, key=self._owed)",
        "min(silent, key=self._owed)",
        f"{ON_GUARD}::test_if_most_is_repeated_the_host_that_holds_up_most_is_unregistered",
    ),
    (
        "guard: blame the next one for the same repetitions",
        GUARD,
        "            self._recent.clear()\n",
        "",
        f"{ON_GUARD}::test_the_others_are_judged_by_what_is_transmitted_afterwards",
    ),
    (
        "guard: an idle host is never heard",
        HOST,
        "        return self._pace.patience_us is not None and",
        "        return self._pace.silence_us is not None and",
        f"{ON_GUARD}::test_a_host_that_may_be_unregistered_is_heard_now_and_then",
    ),
]
