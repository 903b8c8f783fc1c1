"""Deliberate bugs in the opportunistic layer and in what survives a crash, each with its test."""

BARRIER = "src/beforehand/core/barrier.py"
SENDER = "src/beforehand/core/sender.py"
EPIDEMIC = "src/beforehand/core/epidemic.py"
NEIGHBOUR = "src/beforehand/core/neighbour.py"
CACHE = "src/beforehand/core/cache.py"
ORDER = "src/beforehand/core/order.py"
VECTOR = "src/beforehand/core/vector.py"
UNORDERED = "src/beforehand/core/unordered.py"
MARKS = "src/beforehand/core/marks.py"
MARKS_TEST = "tests/core/test_marks.py"

MUTANTS = [
    (
        "a mark for what waits",
        MARKS,
        "if told.get(origin, LONG_AGO) < seq <= reached(origin):",
        "if told.get(origin, LONG_AGO) < seq:",
        f"{MARKS_TEST}::test_of_what_waits_or_came_again_no_mark_tells",
    ),
    (
        "a mark for what came again",
        MARKS,
        "if told.get(origin, LONG_AGO) < seq <= reached(origin):",
        "if seq <= reached(origin):",
        f"{MARKS_TEST}::test_what_was_evicted_and_came_again_is_told_by_its_id",
    ),
    (
        "what was told to who is behind counts up to what waits",
        MARKS,
        "                link.unfolded[origin] = reached\n",
        "                pass\n            link.unfolded[origin] = seqs[-1] if seqs else start\n",
        f"{MARKS_TEST}::test_what_turns_up_below_a_message_that_waits_is_told_later",
    ),
    (
        "who is behind is told everything each time",
        MARKS,
        "start = max(seq, horizon_us, link.unfolded.get(origin, LONG_AGO))",
        "start = max(seq, horizon_us)",
        f"{MARKS_TEST}::test_who_says_twice_that_it_is_behind_is_told_of_each_message_once",
    ),
    (
        "behind what has expired",
        MARKS,
        "if seq > horizon_us and origin != own",
        "if origin != own",
        f"{MARKS_TEST}::test_nobody_is_behind_what_has_expired_or_what_it_said_itself",
    ),
    (
        "marks for those who ask",
        MARKS,
        "link.unasked.get(origin, 0) < self._after",
        "link.unasked.get(origin, 0) < 0",
        f"{MARKS_TEST}::test_who_asks_is_told_of_messages_one_by_one_until_it_has_long_not_asked",
    ),
    (
        "who asks for one origin is told of all one by one",
        NEIGHBOUR,
        "            self.unasked.pop(origin, None)\n",
        "            self.unasked.clear()\n",
        f"{MARKS_TEST}::test_who_hears_one_origin_and_not_another_is_told_of_the_other_one_by_one",
    ),
    (
        "who loses its link waits for a mark",
        EPIDEMIC,
        "            self._marks.on_gone(peer, self._links, out)\n",
        "",
        f"{MARKS_TEST}"
        "::test_who_loses_its_link_to_an_origin_is_told_of_its_messages_by_others_at_once",
    ),
    (
        "a greeting is answered again and again",
        MARKS,
        "        elif not link.greeted:  # what",
        "        else:  # what",
        f"{MARKS_TEST}::test_who_greets_again_and_again_is_told_once_what_is_held",
    ),
    (
        "of origins that a greeting does not name nothing is told",
        MARKS,
        "for origin in self._seqs]\n        self._unfold",
        "for origin in self._seqs if origin in come]\n        self._unfold",
        f"{MARKS_TEST}::test_who_has_not_come_as_far_is_told_of_what_it_lacks_and_of_nothing_else",
    ),
    (
        "a greeting that says nothing",
        SENDER,
        "Greeting(frozenset(known[:most]))",
        "Greeting(frozenset())",
        f"{MARKS_TEST}"
        "::test_who_has_come_as_far_is_greeted_with_an_id_for_each_origin_however_much_is_held",
    ),
    (
        "the dead are part of a greeting",
        MARKS,
        "if reached(origin) > least]",
        "if reached(origin) > NOWHERE]",
        f"{MARKS_TEST}::test_what_has_expired_is_not_part_of_a_greeting",
    ),
    (
        "who loses a link speaks of its neighbours",
        MARKS,
        "if o not in links and o != own]",
        "if o != own]",
        f"{MARKS_TEST}"
        "::test_who_loses_its_way_to_a_distant_origin_says_how_far_it_has_come_with_it",
    ),
    (
        "what the dead were told is kept",
        MARKS,
        "for origin, n in link.unasked.items() if origin in self._told}",
        "for origin, n in link.unasked.items()}",
        f"{MARKS_TEST}::test_what_is_known_of_marks_is_bounded_by_what_is_alive",
    ),
    (
        "marks of the dead are kept",
        MARKS,
        "for origin, seq in self._told.items() if seq > horizon_us}",
        "for origin, seq in self._told.items()}",
        f"{MARKS_TEST}::test_what_is_known_of_marks_is_bounded_by_what_is_alive",
    ),
    (
        "push to those who are told everything anyway, and not to the others",
        SENDER,
        "            if link.greeted:\n                out.sends",
        "            if not link.greeted:\n                out.sends",
        "tests/core/test_epidemic_push.py"
        "::test_a_push_takes_one_frame_and_those_further_off_are_told",
    ),
    (
        "push and announce",
        SENDER,
        "            if link.greeted:\n                out.sends",
        "            if True:\n                out.sends",
        "tests/core/test_epidemic_push.py"
        "::test_who_was_not_greeted_yet_is_told_of_it_with_all_else",
    ),
    (
        "ask every neighbour that offers",
        EPIDEMIC,
        "lacking.difference(self._asking)",
        "lacking",
        "tests/core/test_epidemic.py::test_nothing_is_asked_of_two_neighbours_at_once",
    ),
    (
        "do not ask elsewhere when a link goes down",
        EPIDEMIC,
        "            self._ask_elsewhere(now_us, gone.asked, out)\n            self._marks",
        "            self._marks",
        "tests/core/test_epidemic.py"
        "::test_a_link_that_goes_down_forgets_what_was_under_way_and_asks_elsewhere",
    ),
    (
        "do not pass news on",
        EPIDEMIC,
        "            self._store(now_us, welcome, out)\n"
        "            self._announce_news(now_us, out, welcome)",
        "            self._store(now_us, welcome, out)",
        "tests/sim/test_contacts.py::test_a_crowd_of_hundreds_equals_the_ideal_flood",
    ),
    (
        "ask again for what was evicted",
        EPIDEMIC,
        "self._evicted.taken_from(lacking.difference(self._asking))",
        "lacking.difference(self._asking)",
        "tests/core/test_epidemic.py"
        "::test_what_was_evicted_is_not_asked_for_again_until_somebody_new_comes",
    ),
    (
        "never repeat a request",
        SENDER,
        "                    self.request(now_us, peer, link, frozenset(link.asked), out)",
        "                    pass",
        "tests/core/test_epidemic.py::test_what_is_lost_is_repeated",
    ),
    (
        "let frames outlive the contact",
        "src/beforehand/sim/links.py",
        "return (arrive_us,) if arrive_us < self.down_us else ()",
        "return (arrive_us,)",
        "tests/sim/test_contacts.py::test_a_contact_that_ends_cuts_off_what_is_under_way",
    ),
    (
        "do not save the horizon",
        ORDER,
        '            out.saves.append(("own", "horizon", self._horizon_us))',
        "            pass",
        "tests/core/test_restore.py"
        "::test_a_message_given_up_before_a_crash_stays_so_when_the_clock_is_behind_after_it",
    ),
    (
        "do not restore the horizon",
        ORDER,
        'own.get("horizon", LONG_AGO)',
        "LONG_AGO",
        "tests/core/test_restore.py"
        "::test_a_message_given_up_before_a_crash_stays_so_when_the_clock_is_behind_after_it",
    ),
    (
        "do not save the horizon without order",
        UNORDERED,
        "            self._save_horizon(out)\n",
        "",
        "tests/core/test_restore.py"
        "::test_what_had_expired_without_order_stays_so_after_a_restart_with_the_clock_back",
    ),
    (
        "a layer that forgets its horizon in a crash",
        EPIDEMIC,
        'rows.get(OWN.name, {}).get("horizon", LONG_AGO)',
        "LONG_AGO",
        "tests/core/test_restore.py"
        "::test_what_had_expired_before_a_crash_is_not_offered_after_it_when_the_clock_is_behind",
    ),
    (
        "restore a vector without its own entry",
        VECTOR,
        'dict(rows.get("delivered", {}))',
        '{o: s for o, s in rows["delivered"].items() if o != self.node}',
        "tests/core/test_restore.py::test_a_restored_vector_goes_on_where_it_was",
    ),
    (
        "a durable layer over an order that is not",
        EPIDEMIC,
        "self._durable = order.durable = durable",
        "self._durable = durable",
        "tests/core/test_restore.py::test_a_durable_layer_makes_its_order_durable",
    ),
    (
        "leave what was evicted saved",
        EPIDEMIC,
        'out.saves += [("message", id, None) for id in gone]',
        'out.saves += [("message", id, None) for id in expired]',
        "tests/core/test_restore.py::test_what_was_evicted_is_not_held_again_after_a_restart",
    ),
    (
        "another neighbour's copy does not cancel a request",
        EPIDEMIC,
        "                self._links[asked_of].asked.discard(id)",
        "                pass",
        "tests/core/test_epidemic.py"
        "::test_what_comes_from_another_neighbour_is_not_asked_for_any_more",
    ),
    (
        "another neighbour's regrets cancel a request",
        EPIDEMIC,
        "gone = gone.intersection(link.asked)",
        "gone = gone",
        "tests/core/test_epidemic.py"
        "::test_what_one_neighbour_has_no_more_is_not_asked_again_of_another_that_was_asked",
    ),
    (
        "announce what was evicted",
        EPIDEMIC,
        "        if self._cache.is_bounded:\n            fresh",
        "        if False:\n            fresh",
        "tests/core/test_epidemic.py::test_what_was_evicted_before_the_tick_is_not_announced",
    ),
    (
        "announce to a neighbour what it was sent",
        SENDER,
        "        link.theirs.update([message.id for message in messages])\n",
        "",
        "tests/core/test_epidemic.py"
        "::test_what_a_neighbour_asked_for_and_was_sent_is_not_announced_to_it_again",
    ),
    (
        "announce news a period late",
        SENDER,
        "return now_us + period_us - (now_us - self._phase_us) % period_us",
        "wait_us = 2 * period_us - (now_us - self._phase_us) % period_us",
        "tests/core/test_epidemic.py"
        "::test_news_waits_for_the_next_tick_and_not_for_the_one_after_it",
    ),
    (
        "announcements of any size",
        SENDER,
        "        for batch in split_ids(ids, self._options.frame_bytes_max):\n"
        "            self._number",
        "        for batch in (ids,):\n            self._number",
        "tests/core/test_epidemic_frames.py::test_no_announcement_is_larger_than_a_frame",
    ),
    (
        "requests of any size",
        SENDER,
        "split_ids(ids, self._options.frame_bytes_max) if ids else (ids,)",
        "(ids,)",
        "tests/core/test_epidemic_frames.py"
        "::test_no_request_is_larger_than_a_frame_and_each_acknowledges",
    ),
    (
        "regrets of any size",
        SENDER,
        "for batch in split_ids(gone, bytes_max)]",
        "for batch in (gone,)]",
        "tests/core/test_epidemic_frames.py::test_what_is_gone_is_said_in_frames_of_the_same_size",
    ),
    (
        "take in what is not proven",
        EPIDEMIC,
        "if id not in refused], gone | refused, fine",
        "if id not in forged], gone | forged, fresh",
        "tests/core/test_epidemic_frames.py"
        "::test_a_message_without_a_proof_of_its_origin_is_refused",
    ),
    (
        "send own messages without a proof",
        EPIDEMIC,
        "order.proofs = proofs",
        "order.proofs = None",
        "tests/core/test_epidemic_frames.py"
        "::test_where_a_group_asks_for_proofs_every_own_message_is_sent_with_one",
    ),
    (
        "take any timer for one's own",
        SENDER,
        "return timer == RETRY_TIMER and self._retry_armed",
        "return timer == RETRY_TIMER",
        "tests/core/test_epidemic.py::test_a_timer_that_nobody_set_is_nothing",
    ),
    (
        "let a timer end what has no lifetime",
        EPIDEMIC,
        "if timer == ORDER_TIMER and self.order.expires:",
        "if timer == ORDER_TIMER:",
        "tests/core/test_epidemic.py::test_a_timer_that_nobody_set_is_nothing",
    ),
    (
        "speak by a clock that was set back",
        EPIDEMIC,
        "self.order.on_broadcasts(max(now_us, self._horizon_us), said, out)",
        "self.order.on_broadcasts(now_us, said, out)",
        "tests/core/test_epidemic.py"
        "::test_what_is_said_after_the_clock_was_set_back_reaches_others",
    ),
    (
        "remember everything that was evicted",
        CACHE,
        "if len(self.ids) > EVICTED_MAX:",
        "if False:",
        "tests/core/test_registries.py"
        "::test_what_was_evicted_in_a_long_contact_is_remembered_up_to_a_bound",
    ),
    (
        "forget that more was evicted than can be remembered",
        CACHE,
        "            self._is_more = True\n",
        "",
        "tests/core/test_epidemic.py"
        "::test_what_was_evicted_is_not_asked_for_again_until_somebody_new_comes",
    ),
    (
        "remember evictions when somebody new comes",
        EPIDEMIC,
        "            self._evicted.clear()\n",
        "",
        "tests/core/test_epidemic.py"
        "::test_what_was_evicted_is_not_asked_for_again_until_somebody_new_comes",
    ),
    (
        "keep the places of what has expired",
        CACHE,
        "            if len(self._places) > 2 * len(entries):",
        "            if False:",
        "tests/core/test_registries.py::test_places_below_the_capacity_are_those_of_what_is_held",
    ),
    (
        "remember announcements of what has expired",
        EPIDEMIC,
        "            link.theirs.difference_update(dead)  # nobody would take them out later\n",
        "",
        "tests/core/test_registries.py"
        "::test_of_a_neighbour_that_announces_what_has_expired_nothing_is_remembered",
    ),
    (
        "remember for ever what a neighbour has",
        NEIGHBOUR,
        "if len(self.theirs) > THEIRS_MIN + 2 * (len(held) + len(asking) + len(offers)):",
        "if False:",
        "tests/core/test_registries.py"
        "::test_of_a_neighbour_that_announces_again_what_was_evicted_little_is_remembered",
    ),
    (
        "repeat what was never acknowledged besides what is new",
        SENDER,
        "                link.unheard.clear()\n",
        "",
        "tests/core/test_registries.py"
        "::test_a_neighbour_that_never_acknowledges_is_owed_no_more_than_what_is_held",
    ),
    (
        "send what has expired",
        SENDER,
        "messages = self._cache.pick(ids, horizon_us)",
        "messages = self._cache.pick(ids, -(1 << 62))",
        "tests/core/test_epidemic.py::test_expired_messages_are_not_sent",
    ),
    (
        "of what was evicted remember the first",
        CACHE,
        "undelivered[-EVICTED_MAX // 2 :]",
        "undelivered[: EVICTED_MAX // 2]",
        "tests/core/test_cache.py::test_of_what_was_evicted_undelivered_the_latest_are_remembered",
    ),
    (
        "vector clocks that take what waits already for new",
        VECTOR,
        "if waiting.delivered.get(origin, 0) >= seq or message.id in waiting.pending:",
        "if waiting.delivered.get(origin, 0) >= seq:",
        "tests/core/test_vector.py"
        "::test_a_message_that_comes_again_while_it_waits_waits_on_since_it_first_came",
    ),
    (
        "search no more for what garbage came for",
        EPIDEMIC,
        "came, gone, fresh = [id for id in came if id not in refused], gone | refused, fine",
        "fresh = proven",
        "tests/core/test_epidemic_frames.py"
        "::test_garbage_under_the_id_of_a_message_kept_it_from_coming",
    ),
    (
        "a question moves the horizon",
        EPIDEMIC,
        "        is_later = self.order.expires and now_us > self._horizon_us\n",
        "        is_later = self._horizon(now_us) > now_us\n",
        "tests/core/conformance/test_questions.py::test_a_question_changes_nothing[delta]",
    ),
]
