"""Deliberate bugs in what the mobile systems do not share with WAS, each with its killer."""

HANDOFF = "src/beforehand/core/mobile/handoff.py"
GUARD = "src/beforehand/core/mobile/guard.py"
STATION = "src/beforehand/core/mobile/station.py"
HOST = "src/beforehand/core/mobile/host.py"

CK_STATION = "src/beforehand/core/mobile/ck_station.py"
CK_GUEST = "src/beforehand/core/mobile/ck_guest.py"
CK_HANDOFF = "src/beforehand/core/mobile/ck_handoff.py"
CK_DISCARD = "src/beforehand/core/mobile/ck_discard.py"
CK_HOST = "src/beforehand/core/mobile/ck_host.py"
TCP = "src/beforehand/core/mobile/tcp.py"
TCP_FLOODING = "src/beforehand/core/mobile/tcp_flooding.py"

ON_FLOOD = "tests/core/mobile/test_was_flood.py"
ON_GUARD = "tests/core/mobile/test_guard.py"
ON_CK_STATION = "tests/core/mobile/test_ck_station.py"
ON_CK_HANDOFF = "tests/core/mobile/test_ck_handoff.py"
ON_CK_HOST = "tests/core/mobile/test_ck_host.py"
ON_TCP = "tests/core/mobile/test_tcp.py"
ON_TCP_FLOODING = "tests/core/mobile/test_tcp_flooding.py"
SWARM = (
    "tests/check/test_fuzz.py::test_a_few_hundred_seeds_find_nothing_and_see_every_kind_of_trouble"
)

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
    (
        "ck: send a message before its host has what comes before it",
        CK_GUEST,
        "        cause = self.seen.first_missing(kept.needs)\n",
        "        cause = None\n",
        f"{ON_CK_STATION}::"
        "test_a_message_waits_until_its_host_has_acknowledged_what_comes_before_it",
    ),
    (
        "ck: the same, as the swarm sees it",
        CK_GUEST,
        "                    self._file(after, self.blocked[after])\n",
        "                    self.free[after] = None\n",
        f"{SWARM}[ck]",
    ),
    (
        "ck: what waited for one message may go, whatever else it waits for",
        CK_GUEST,
        "                    self._file(after, self.blocked[after])\n",
        "                    self.free[after] = None\n",
        f"{ON_CK_STATION}::test_a_message_that_comes_after_two_waits_for_both",
    ),
    (
        "ck: forget what waits behind a gap that was filled",
        CK_GUEST,
        "        for counted in self.seen.add(id):\n",
        "        for counted in self.seen.add(id)[:1]:\n",
        f"{ON_CK_STATION}::test_what_waits_behind_a_gap_is_sent_when_the_gap_is_filled",
    ),
    (
        "ck: where there is little room, send what came last",
        CK_GUEST,
        "key=lambda id: self.blocked[id].place)",
        "key=lambda id: -self.blocked[id].place)",
        f"{ON_CK_STATION}::test_where_there_is_room_for_one_the_oldest_goes_first",
    ),
    (
        "ck: repeat in every round what was repeated once",
        CK_STATION,
        "                kept.rests = self._pace.rounds - 1\n",
        "                pass\n",
        f"{ON_CK_STATION}::test_with_three_rounds_in_an_interval_every_third_repeats_a_message",
    ),
    (
        "was: repeat in every round what was repeated once",
        STATION,
        "                kept.rests = rounds - 1\n",
        "                pass\n",
        "tests/core/mobile/test_station.py"
        "::test_with_three_rounds_in_an_interval_every_third_repeats_a_message",
    ),
    (
        "was: catch up on everything at once",
        "src/beforehand/core/mobile/cell.py",
        "        return list(islice(self.catch_up.items(), count))\n",
        "        return list(self.catch_up.items())\n",
        "tests/core/mobile/test_handoff.py::test_no_more_than_agreed_is_caught_up_on_at_once",
    ),
    (
        "was: repeat in every round what is caught up on",
        STATION,
        'if guest.phase == "here" and not self._round:',
        'if guest.phase == "here":',
        "tests/core/mobile/test_handoff.py"
        "::test_with_three_rounds_in_an_interval_every_third_repeats_what_is_caught_up_on",
    ),
    (
        "ck: two messages of one host do not depend on each other",
        CK_STATION,
        "        needs[site] = max(needs[site], last)\n",
        "        needs[site] = max(needs[site], 0 * last)\n",
        f"{ON_CK_STATION}::test_a_message_depends_on_what_its_host_had_delivered_and_said_before",
    ),
    (
        "ck: discard a message when the first host has it",
        CK_DISCARD,
        "        if not lacking:\n",
        "        if len(lacking) <= 1:\n",
        f"{ON_CK_STATION}::"
        "test_a_station_discards_its_own_message_when_the_last_host_anywhere_has_it",
    ),
    (
        "ck: discard a message as soon as the own cell has it",
        CK_DISCARD,
        "            peer = self._via[self._sites[receipt.site]]\n",
        "            peer = self._via[self._sites[receipt.site]]\n"
        "            self._drop((receipt.site, receipt.number))\n",
        f"{ON_CK_STATION}::test_a_message_is_kept_until_its_own_station_says_that_all_have_it",
    ),
    (
        "ck: let an earlier join undo a later one",
        CK_DISCARD,
        "        if self._members.get(host, 0) >= ses:",
        "        if self._members.get(host, 0) == ses:",
        f"{ON_CK_STATION}::test_a_join_of_before_changes_nothing_for_a_later_one",
    ),
    (
        "ck: hand the host to an older connection",
        CK_HANDOFF,
        "            if guest.ses < frame.ses:\n                self._give(",
        "            if guest.ses != frame.ses:\n                self._give(",
        f"{ON_CK_HANDOFF}::test_an_older_connection_is_refused_wherever_it_asks",
    ),
    (
        "ck: who was refused forgets that the host came back",
        CK_HANDOFF,
        "        if pending.ses > frame.ses:\n            self._fetch(pending, out)\n"
        "            return\n",
        "",
        f"{ON_CK_HANDOFF}::test_who_is_refused_asks_again_if_the_host_has_come_back_meanwhile",
    ),
    (
        "ck: forget who asks during a handoff",
        CK_HANDOFF,
        "            self._on_fetch(pending.waiting, out)\n",
        "            pass\n",
        f"{ON_CK_HANDOFF}::test_who_asks_during_a_handoff_is_served_at_its_end",
    ),
    (
        "ck: take what was for all before we were among them",
        CK_HOST,
        "if frame.hosts else frame.turn >= self._turn",
        "if frame.hosts else True",
        f"{ON_CK_HOST}::test_what_was_sent_to_all_before_it_was_registered_is_not_for_it",
    ),
    (
        "ck: leave what comes again unacknowledged",
        CK_HOST,
        "            self.counters.duplicate += 1\n",
        "            self.counters.duplicate += 1\n            return\n",
        f"{ON_CK_HOST}::test_what_it_hears_again_is_acknowledged_again_and_not_delivered",
    ),
    (
        "tcp: hand on what is there, gap or not",
        TCP,
        "        while self._expected in self._early:\n",
        "        while self._early:\n            self._expected = min(self._early)\n",
        f"{ON_TCP}::test_a_gap_is_acknowledged_at_once_and_again_for_every_segment_behind_it",
    ),
    (
        "tcp: the same, as the swarm sees it",
        TCP,
        "            if number >= self._expected and number not in self._early:\n",
        "            if number not in self._early:\n                self._expected = number\n",
        f"{SWARM}[tcp_flooding]",
    ),
    (
        "tcp: keep the pace after a timeout",
        TCP,
        "            self._timeout_us = min(2 * self._timeout_us, self._tcp.timeout_us_max)\n",
        "",
        f"{ON_TCP}::test_the_timeout_doubles_with_every_attempt_and_progress_resets_it",
    ),
    (
        "tcp: wait for the timeout whatever is acknowledged twice",
        TCP,
        "            if self._duplicates == DUPLICATES:\n",
        "            if self._duplicates < 0:\n",
        f"{ON_TCP}::test_three_duplicate_acknowledgements_send_the_first_segment_again_without_a_"
        "timeout",
    ),
    (
        "tcp: do not halve the window after a loss",
        TCP,
        "        self._threshold = max(flight / 2, float(FLIGHT_MIN))",
        "        self._threshold = max(float(flight), float(FLIGHT_MIN))",
        f"{ON_TCP}::test_after_a_fast_retransmission_the_window_is_half_of_what_was_in_flight",
    ),
    (
        "tcp: have no limit to what is in flight",
        TCP,
        "        room = min(int(self._window), self._tcp.window)",
        "        room = self._end",
        f"{ON_TCP}::test_no_more_than_the_window_is_in_flight",
    ),
    (
        "tcp: send every message by itself at once",
        TCP,
        "            if first > self._oldest and not is_full:\n",
        "            if first < self._oldest and not is_full:\n",
        f"{ON_TCP}::test_what_is_small_waits_while_something_is_in_flight",
    ),
    (
        "tcp_flooding: let a message overtake another one on its way to a host",
        TCP_FLOODING,
        "                guest.held.append((due_us, message))\n",
        "                guest.held.appendleft((due_us, message))\n",
        f"{ON_TCP_FLOODING}::test_messages_reach_a_host_in_the_order_of_its_station",
    ),
    (
        "tcp_flooding: send to all hosts of the cell at once",
        TCP_FLOODING,
        "                due_us += self._tcp.gap_us\n",
        "                due_us += 0 * self._tcp.gap_us\n",
        f"{ON_TCP_FLOODING}::test_a_message_goes_to_every_host_by_itself_with_a_gap_in_between",
    ),
    (
        "tcp_flooding: say again in another cell what may have been flooded",
        TCP_FLOODING,
        "            self._unsent = connection.unsent()\n",
        "            self._unsent = connection.unsure() + connection.unsent()\n",
        f"{ON_TCP_FLOODING}::"
        "test_who_changes_its_cell_gives_up_what_may_have_arrived_and_says_the_rest_there",
    ),
    (
        "ck: take what the old station had for what the new one has",
        CK_HOST,
        "        self._unheard = dict.fromkeys(self._said)\n",
        "",
        f"{ON_CK_HOST}::test_a_message_that_only_the_old_station_had_is_repeated_in_the_new_cell",
    ),
]
