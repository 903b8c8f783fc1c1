"""Deliberate bugs in deadlines, stamps and deferral, each with the test that must notice it."""

BARRIER = "src/beforehand/core/barrier.py"
WAITING = "src/beforehand/core/waiting.py"
ORDER = "src/beforehand/core/order.py"
UNORDERED = "src/beforehand/core/unordered.py"
DEADLINES = "tests/core/test_deadlines.py"

MUTANTS = [
    (
        "take the smallest deadline of the causes for the largest",
        BARRIER,
        "last = max(last, max(self._barrier.values(), default=LONG_AGO))",
        "last = max(last, min(self._barrier.values(), default=LONG_AGO))",
        f"{DEADLINES}::test_the_deadline_of_an_effect_is_beyond_the_largest_of_its_causes",
    ),
    (
        "take the smaller of the own deadline and those of the causes",
        BARRIER,
        "last = max(last, max(self._barrier.values(), default=LONG_AGO))",
        "last = min(last, max(self._barrier.values(), default=LONG_AGO))",
        f"{DEADLINES}::test_the_deadline_of_an_effect_is_beyond_the_largest_of_its_causes",
    ),
    (
        "let the causes decide on the deadline alone",
        BARRIER,
        "last = max(now_us + lifetime_us, last + 1) if self.expires else last + 1",
        "last = min(now_us + lifetime_us, last + 1) if self.expires else last + 1",
        f"{DEADLINES}::test_the_deadline_of_an_effect_is_beyond_the_largest_of_its_causes",
    ),
    (
        "do not save the horizon with what is forgotten as delivered",
        BARRIER,
        "        self._save_horizon(out)\n        self._purge_at",
        "        self._purge_at",
        "tests/core/test_restore.py"
        "::test_what_was_forgotten_as_delivered_is_not_delivered_again_after_a_restart_in_the_past",
    ),
    (
        "do not save the horizon by which causes are left out",
        BARRIER,
        "            self._save_horizon(out)\n        self._purge_barrier_at",
        "        self._purge_barrier_at",
        "tests/core/test_restore.py"
        "::test_a_cause_that_was_left_out_before_a_restart_is_not_delivered_after_the_next_message",
    ),
    (
        "do not save up to where own messages came back",
        BARRIER,
        'out.saves += [("own", "seq", self._last_seq), ("own", "forgotten", self.forgotten)]',
        'out.saves += [("own", "forgotten", self.forgotten)]',
        "tests/core/test_restore.py"
        "::test_a_node_whose_own_message_came_back_does_not_reuse_its_seq_after_a_restart",
    ),
    (
        "do not defer",
        WAITING,
        "        if message.stamp > horizon_us + self._ahead_us:",
        "        if False:",
        f"{DEADLINES}"
        "::test_clocks_that_are_all_set_back_do_not_let_a_cause_be_delivered_after_its_effect",
    ),
    (
        "do not defer what waited for a cause before",
        WAITING,
        "        if entry.message.stamp > horizon_us + self._ahead_us:",
        "        if False:",
        f"{DEADLINES}::test_an_effect_waits_for_its_deferred_cause_and_for_its_own_stamp",
    ),
    (
        "set no timer for what is deferred",
        WAITING,
        "        if self._deferred:\n            deferred_us",
        "        if False:\n            deferred_us",
        f"{DEADLINES}"
        "::test_a_message_of_a_clock_ahead_by_more_than_the_skew_is_delivered_when_ours_is_near",
    ),
    (
        "deliver what was deferred beyond its deadline",
        WAITING,
        "(self._lapsed if message.id[1] <= now_us else ready).append(message)",
        "ready.append(message)",
        f"{DEADLINES}::test_a_deferred_message_expires_if_the_clock_jumps_beyond_its_deadline",
    ),
    (
        "take a deferred message that returned for the one that was dropped",
        WAITING,
        "return self.pending.get(entry.message.id) is entry",
        "return entry.message.id in self.pending",
        f"{DEADLINES}::test_a_second_version_of_a_deferred_message_waits_for_its_own_causes",
    ),
    (
        "never sweep what was deferred",
        WAITING,
        "if len(self._deferred) > DEADLINES_MIN + 2 * len(self.pending):",
        "if False:",
        f"{DEADLINES}::test_a_deferred_message_that_is_evicted_is_dropped_and_may_come_again",
    ),
    (
        "never sweep the seqs that nobody waits for",
        WAITING,
        "if len(seqs) > SEQS_MIN + 2 * len(waiters):",
        "if False:",
        "tests/core/test_waiting_model.py"
        "::test_a_seq_that_is_waited_for_again_and_again_is_noted_a_few_times_at_most",
    ),
    (
        "look at everything that is waited for at each delivery",
        WAITING,
        "        if not waiters:\n            del self._waiters[origin], self._seqs[origin]\n"
        "        for entry in woken:",
        "        if not waiters or min(waiters) < seq:\n"
        "            del self._waiters[origin], self._seqs[origin]\n"
        "        for entry in woken:",
        "tests/core/test_waiting_growth.py",
    ),
    (
        "stamp with the clock of the broadcast alone",
        ORDER,
        "return max(self._horizon_us, deadline_us - self._lead_us) if self.expires else 0",
        "return self._horizon_us if self.expires else 0",
        f"{DEADLINES}::test_the_latest_possible_deadline_of_a_cause_makes_no_invalid_effect",
    ),
    (
        "refuse for good what is only too early",
        ORDER,
        "            self._note_early(message)",
        "            self.counters.refused += 1",
        f"{DEADLINES}"
        "::test_what_is_ahead_of_the_clock_by_more_than_twice_the_skew_is_not_refused_for_good",
    ),
    (
        "remember all that came too early",
        ORDER,
        "if len(self.early) > EARLY_MAX:",
        "if False:",
        f"{DEADLINES}::test_of_what_came_too_early_the_latest_are_remembered",
    ),
    (
        "keep on record as early what came in time",
        ORDER,
        "for message in messages if self.early else ():",
        "for message in ():",
        f"{DEADLINES}::test_what_came_too_early_is_forgotten_when_it_comes_in_time_or_expires",
    ),
    (
        "ask for what came too early and has expired",
        ORDER,
        "return [id for id in due if id[1] > horizon_us]",
        "return due",
        f"{DEADLINES}::test_what_came_too_early_is_forgotten_when_it_comes_in_time_or_expires",
    ),
    (
        "accept a deadline before any node may deliver",
        ORDER,
        "            and stamp - skew_us < id[1]\n",
        "",
        f"{DEADLINES}::test_whether_stamp_and_deadline_belong_together_is_decided_by_no_clock",
    ),
    (
        "begin a lifetime before the horizon",
        BARRIER,
        "            now_us = self._horizon_us\n",
        "",
        f"{DEADLINES}::test_a_message_said_after_the_clock_was_set_back_lives_beyond_the_horizon",
    ),
    (
        "the same without an order",
        UNORDERED,
        "seq = max(self._horizon_us + lifetime_us,",
        "seq = max(now_us + lifetime_us,",
        f"{DEADLINES}::test_a_message_said_after_the_clock_was_set_back_lives_beyond_the_horizon",
    ),
    (
        "sign everything but the stamp",
        "src/beforehand/core/proof.py",
        "_encode((*signed, message.stamp) if message.stamp else signed)",
        "_encode(signed)",
        "tests/core/test_proof.py::test_nothing_can_be_changed_on_the_way",
    ),
]
