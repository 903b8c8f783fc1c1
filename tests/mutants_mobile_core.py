"""Deliberate bugs in hosts and stations, each with the test that must notice it.

Most of them are what a literal reading of the published pseudo-code gives.
"""

HOST = "src/beforehand/core/mobile/host.py"
STATION = "src/beforehand/core/mobile/station.py"
CELL = "src/beforehand/core/mobile/cell.py"
HANDOFF = "src/beforehand/core/mobile/handoff.py"

ON_HOST = "tests/core/mobile/test_host.py"
ON_STATION = "tests/core/mobile/test_station.py"
ON_HANDOFF = "tests/core/mobile/test_handoff.py"

MUTANTS = [
    (
        "take in requests of stations that are not in the tree",
        STATION,
        "            self._handoff.refuse_strangers(source, frame)\n",
        "",
        "tests/core/test_failed_inputs.py::test_a_request_of_a_station_outside_of_the_tree_is"
        "_refused_before_it_ends_a_registration",
    ),
    (
        "trap 1: number every broadcast alike",
        HOST,
        "        self._next_said += 1  # trap 1",
        "        self._next_said += 0",
        f"{ON_HOST}::test_every_broadcast_has_a_number_of_its_own",
    ),
    (
        "trap 2: stop at what was delivered elsewhere",
        HOST,
        "            after = self._after_elsewhere(after + 1)  # trap 2",
        "            after += 1",
        f"{ON_HOST}::test_what_it_delivered_elsewhere_is_passed_over_and_what_waited_for_it_is_not",
    ),
    (
        "trap 3: go on where the station's acknowledgement is",
        HOST,
        "                self._drop_said(heard.next, out)\n",
        "                self._drop_said(heard.next, out)\n"
        "                self._place = Place(self._ses, False, heard.next)\n",
        f"{ON_HOST}::test_an_acknowledgement_clears_what_was_said_and_changes_nothing_else",
    ),
    (
        "trap 4: take the next expected number for the last delivered one",
        CELL,
        "            if seq >= guest.next and guest.host not in kept.delivered_by:",
        "            if seq > guest.next and guest.host not in kept.delivered_by:",
        f"{ON_HANDOFF}::test_the_old_station_tells_what_was_not_delivered_and_what_came_since",
    ),
    (
        "trap 5: use a place although it is of another connection",
        HANDOFF,
        "        if place.ses != guest.ses:\n            return",
        "        if place.ses < 0:\n            return",
        f"{ON_HANDOFF}::test_a_place_in_another_connection_is_no_acknowledgement",
    ),
    (
        "trap 6: keep what came early in the old cell",
        HOST,
        "        self._early.clear()\n        self._elsewhere = ()\n",
        "        self._elsewhere = ()\n",
        f"{ON_HOST}::test_what_came_early_in_one_cell_is_nothing_in_the_next",
    ),
    (
        "trap 6: a station believes that who comes back has kept what came early",
        HANDOFF,
        "                guest.has = ()  # what came early it has forgotten (trap 6)\n",
        "",
        f"{ON_HANDOFF}::test_who_comes_back_has_forgotten_what_it_had_out_of_order",
    ),
    (
        "trap 7: one number space for the cell and for catching up",
        HANDOFF,
        "        if place.is_catching:",
        "        if place.ses < 0:",
        f"{ON_HANDOFF}::test_numbers_of_the_catching_up_are_not_those_of_the_cell",
    ),
    (
        "trap 7: a station counts what was caught up on by the cell's numbers",
        STATION,
        "            elif frame.place.is_catching:",
        "            elif frame.place.ses < 0:",
        f"{ON_HANDOFF}::test_what_is_caught_up_on_is_said_again_until_it_is_acknowledged",
    ),
    (
        "trap 7: a host does not say by which numbers it counts",
        HOST,
        "            self._place = Place(self._ses, True, 0)",
        "            self._place = Place(self._ses, False, 0)",
        f"{ON_HOST}::test_it_catches_up_before_it_goes_on_and_repeats_that_it_did",
    ),
    (
        "trap 8: take messages of a host that was handed on",
        STATION,
        '        elif guest.ses == ses and guest.phase == "here":',
        '        elif guest.ses == ses or guest.phase == "going":',
        f"{ON_HANDOFF}::test_after_its_answer_the_old_station_takes_nothing_more_from_the_host",
    ),
    (
        "trap 8: relay before the old station told what was relayed already",
        STATION,
        '        elif guest.ses == ses and guest.phase == "here":',
        "        elif guest.ses == ses:",
        f"{ON_HANDOFF}::test_during_the_handoff_the_new_station_takes_nothing_from_the_host",
    ),
    (
        "trap 9: listen to other cells",
        HOST,
        "frame.cell != self.cell or source != self.cell:",
        "self.cell is None:",
        f"{ON_HOST}::test_a_frame_of_another_cell_is_ignored",
    ),
    (
        "trap 9: a station takes what was sent to another one",
        STATION,
        "            if frame.cell == self.node and frame.host == source:",
        "            if frame.host == source:",
        f"{ON_STATION}::test_what_was_said_in_another_connection_or_cell_is_not_relayed",
    ),
    (
        "trap 9: count by the cell's numbers before the connection stands",
        HOST,
        '        if self.state == "connected":  # else the cell',
        '        if self.state != "away":  # else the cell',
        f"{ON_HOST}::test_what_the_cell_hears_before_the_connection_stands_is_not_counted",
    ),
    (
        "trap 10: who has left joins again under its name",
        HOST,
        '        if self.state == "gone":\n            return\n        self._ses += 1',
        '        if self.state == "gone":\n            self.state = "away"\n        self._ses += 1',
        f"{ON_HOST}::test_who_leaves_says_so_until_it_is_heard_and_never_speaks_again",
    ),
    (
        "trap 11: forget the deliveries since the last acknowledgement",
        HOST,
        "            if self._saves_deliveries:",
        "            if self._saves_deliveries and not self.tables:",
        f"{ON_HOST}::test_the_place_after_a_crash_is_that_of_the_last_delivery_or_acknowledgement",
    ),
    (
        "trap 12: send handoff frames past the tree",
        STATION,
        "                self._handoff.pass_on(source, frame, out)",
        "                self._on_routed(frame, out)",
        f"{ON_STATION}::test_frames_for_others_go_on_hop_by_hop",
    ),
    (
        "trap 13: leave a request unanswered if the host is unknown",
        HANDOFF,
        "            # it was handed on, and the asker asks whom it was handed to.\n"
        "            self._route(unknown, out)",
        "            # it was handed on, and the asker asks whom it was handed to.\n"
        "            return",
        f"{ON_HANDOFF}::test_who_never_registered_the_host_says_so",
    ),
    (
        "trap 13: forget a saved request",
        HANDOFF,
        "        if waiting is not None:\n            self.on_request1(waiting, out)",
        "        if waiting is None:\n            pass",
        f"{ON_HANDOFF}::test_who_is_in_an_older_handoff_answers_at_its_end",
    ),
    (
        "trap 13: forget a saved request that a newer one replaces",
        HANDOFF,
        "            if later is not None:\n                self._route(Response1(",
        "            if later is None:\n                self._route(Response1(",
        f"{ON_HANDOFF}::test_of_two_who_wait_the_newer_one_is_served_and_the_other_one_answered",
    ),
    (
        "trap 13: hand the host on to an older connection",
        HANDOFF,
        "        if guest is None or guest.ses >= frame.ses or",
        "        if guest is None or",
        f"{ON_HANDOFF}::test_who_has_seen_a_newer_connection_knows_nothing_for_an_older_one",
    ),
    (
        "trap 13: whom it was handed to is asked to wait for it here",
        HANDOFF,
        '        if guest is None or guest.ses >= frame.ses or guest.phase == "going":',
        "        if guest is None or guest.ses >= frame.ses:",
        f"{ON_HANDOFF}::test_who_has_handed_the_host_on_knows_nothing_for_a_third_one",
    ),
    (
        "trap 13: forget a saved request with the host that it asks for",
        HANDOFF,
        "        if waiting is not None:\n            self.on_request1(waiting, out)",
        "        if waiting is not None and not guest.is_doomed:\n"
        "            self.on_request1(waiting, out)",
        f"{ON_HANDOFF}::test_a_saved_request_is_answered_although_the_host_was_deleted_meanwhile",
    ),
    (
        "trap 13: delete a host in the middle of its handoff",
        HANDOFF,
        '        if guest.phase in ("asking", "fetching"):',
        '        if guest.phase in ("nowhere",):',
        f"{ON_HANDOFF}::test_a_saved_request_is_answered_although_the_host_was_deleted_meanwhile",
    ),
    (
        "trap 13: leave behind what an older handoff registered",
        HANDOFF,
        "        self._delete(guest.host, tuple((answer.source, guest.ses) for answer in others),"
        " out)\n",
        "",
        f"{ON_HANDOFF}::test_of_two_who_know_the_host_the_one_of_the_later_connection_counts",
    ),
    (
        "trap 13: leave behind what a host registered at others before it came back",
        HANDOFF,
        "                self._delete(frame.host, self._visits(frame), out)\n",
        "",
        f"{ON_HANDOFF}::test_who_comes_back_to_its_station_goes_on_where_it_was",
    ),
    (
        "trap 13: leave behind what earlier joins registered",
        HANDOFF,
        "            cell.guests[host] = guest\n"
        "            self._delete(host, self._visits(frame), out)\n",
        "            cell.guests[host] = guest\n",
        f"{ON_STATION}::test_a_join_ends_what_earlier_ones_left_behind",
    ),
    (
        "trap 14: discard what a host in a handoff may need",
        CELL,
        "        until = min((guest.next for guest in self.guests.values()), default=self.next)",
        "        here = [guest.next for guest in self.guests.values() if guest.phase == 'here']\n"
        "        until = min(here, default=self.next)",
        f"{ON_HANDOFF}::test_from_connect_on_nothing_is_discarded_that_the_host_may_need",
    ),
    (
        "trap 14: keep for a host in a handoff only what comes",
        HANDOFF,
        "        guest = Guest(frame.host, frame.ses, cell.oldest(), frame.next_said,",
        "        guest = Guest(frame.host, frame.ses, cell.next, frame.next_said,",
        f"{ON_HANDOFF}::test_from_connect_on_nothing_is_discarded_that_the_host_may_need",
    ),
    (
        "trap 15: take the host as new at the first answer",
        HANDOFF,
        "        if not guest.asked:\n            self._go_on(guest, out)\n\n    def _go_on",
        "        if guest.known == []:\n            self._go_on(guest, out)\n\n    def _go_on",
        f"{ON_HANDOFF}::test_who_recovers_is_new_only_after_all_stations_have_answered",
    ),
    (
        "trap 15: who recovers believes that it was nowhere",
        HOST,
        "            self._visits = None\n",
        "            self._visits = {}\n",
        f"{ON_HOST}::test_who_recovers_asks_all_stations_in_a_new_connection",
    ),
    (
        "trap 15: who recovers forgets that it was leaving",
        HOST,
        "            if memory.has_left:\n",
        "            if memory.has_left and not self.tables:\n",
        f"{ON_HOST}::test_who_crashes_while_it_leaves_goes_on_leaving",
    ),
    (
        "trap 15: who moves again in a handoff forgets where it began",
        HOST,
        '        if self.state in ("connecting", "catching", "leaving") and',
        '        if self.state in ("catching", "leaving") and',
        f"{ON_HOST}::"
        "test_who_moves_before_it_is_answered_names_the_station_that_may_have_registered_it",
    ),
    (
        "start a host that nobody knows with what is kept",
        HANDOFF,
        "        guest.next = self._cell.next\n        guest.is_fresh = True",
        "        guest.is_fresh = True",
        f"{ON_HANDOFF}::"
        "test_what_a_host_may_have_delivered_is_not_cast_to_it_when_it_is_taken_as_new",
    ),
    (
        "trust a registration that the host never heard of",
        HANDOFF,
        "    return place.ses > guest.ses or (guest.is_fresh and place.ses < guest.ses)",
        "    return place.ses > guest.ses",
        f"{ON_HANDOFF}::test_a_registration_as_new_that_the_host_never_heard_of_is_worth_nothing",
    ),
    (
        "trust a registration that the host has outlived",
        HANDOFF,
        "    return place.ses > guest.ses or (guest.is_fresh and place.ses < guest.ses)",
        "    return guest.is_fresh and place.ses < guest.ses",
        f"{ON_HANDOFF}::test_a_registration_that_the_host_has_outlived_is_worth_nothing",
    ),
    (
        "do not tell a host that it was unregistered",
        STATION,
        "            out.sends.append((EVERYBODY, Forgotten(self.node, frame.host, ses)))\n",
        "            pass\n",
        f"{ON_STATION}::"
        "test_a_host_that_owes_acknowledgements_and_is_silent_is_unregistered_and_told",
    ),
    (
        "acknowledge once that all was caught up on",
        HOST,
        '        self._owes_ack = self.state == "catching"  # until we are told to go on',
        "        self._owes_ack = False",
        f"{ON_HOST}::test_it_catches_up_before_it_goes_on_and_repeats_that_it_did",
    ),
    (
        "leave the second request unanswered when the host has left",
        HANDOFF,
        "            self._route(Response2(self.node, frame.source, frame.host, frame.ses, (), ()),"
        " out)\n",
        "            pass\n",
        f"{ON_HANDOFF}::test_the_second_request_is_answered_although_the_host_has_left",
    ),
    (
        "take what comes after the second request for delivered",
        HANDOFF,
        "            is_delivered = seq < guest.cut and kept.message.id not in undelivered",
        "            is_delivered = kept.message.id not in undelivered",
        f"{ON_HANDOFF}::test_what_comes_after_the_second_request_is_never_taken_for_delivered",
    ),
    (
        "register a host that has left",
        HANDOFF,
        "        self._left[frame.host] = None\n",
        "        pass\n",
        f"{ON_STATION}::"
        "test_what_a_host_said_before_it_left_and_comes_later_does_not_register_it_again",
    ),
    (
        "transmit more than may be in flight",
        STATION,
        "        end = min(cell.next, cell.oldest() + self._pace.inflight_max)",
        "        end = cell.next",
        f"{ON_STATION}::test_no_more_than_agreed_is_in_flight",
    ),
    (
        "deliver whatever the cell hears",
        HOST,
        "        while after in self._early:\n"
        "            out.deliveries.append(self._early.pop(after).message)",
        "        while self._early:\n"
        "            out.deliveries.append(self._early.pop(min(self._early)).message)",
        "tests/check/test_fuzz.py::"
        "test_a_few_hundred_seeds_find_nothing_and_see_every_kind_of_trouble[mobile]",
    ),
    (
        "keep a copy that was sent before the handoff ended",
        HOST,
        "        is_old = frame.seq < place.next or self._after_elsewhere(frame.seq) > frame.seq",
        "        is_old = frame.seq < place.next",
        f"{ON_HOST}::test_a_copy_that_was_sent_before_the_handoff_ended_is_not_delivered_again",
    ),
    (
        "keep the old cell's numbers of what was delivered elsewhere",
        HOST,
        "        self._early.clear()\n        self._elsewhere = ()\n        self._owes_ack",
        "        self._early.clear()\n        self._owes_ack",
        f"{ON_HOST}::test_what_it_delivered_elsewhere_is_numbered_by_the_cell",
    ),
    (
        "repeat what was delivered elsewhere",
        CELL,
        "            and guest.host not in elsewhere\n",
        "",
        f"{ON_HANDOFF}::test_nothing_is_repeated_for_who_has_delivered_it_elsewhere",
    ),
    (
        "take what the old station had for what the new one has",
        HOST,
        "        self._unheard = set(self._said)\n        for seq in list",
        "        for seq in list",
        f"{ON_HOST}::test_a_message_that_only_the_old_station_had_is_repeated_in_the_new_cell",
    ),
    (
        "take a request of a station that nobody knows",
        HANDOFF,
        "        if frame.source not in self._via:\n",
        "        if False:\n",
        "tests/core/test_hostile_peers.py::"
        "test_a_request_of_an_unknown_station_was_flooded_before_it_was_refused",
    ),
]
