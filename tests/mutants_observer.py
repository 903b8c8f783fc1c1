"""Ways to break timestamps, observers and the drifting world, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

TIMESTAMP = "src/beforehand/core/timestamp.py"
OBSERVER = "src/beforehand/core/observer.py"
REORDER = "src/beforehand/kernels/reorder.py"
VIOLATIONS = "src/beforehand/kernels/violations.py"
DRIFT = "src/beforehand/kernels/drift.py"
CLAIMS = "src/beforehand/papers/observer.py"
STAMPS = "tests/core/test_timestamp.py"
WORLD = "tests/core/test_observer_world.py"
EYE = "tests/core/test_observer.py"
RESTORE = "tests/core/test_observer_restore.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "ε elements are compared, as printed: too few where a message takes no time",
        TIMESTAMP,
        "return self.epsilon + 1",
        "return self.epsilon",
        f"{STAMPS}::test_a_message_that_takes_no_time_makes_c_equal_to_epsilon",
    ),
    (
        "the clock is kept modulo ε + δ + 1, as printed",
        TIMESTAMP,
        "return self.delta + 2 * self.epsilon",
        "return self.delta + self.epsilon",
        f"{STAMPS}::test_the_published_modulus_confuses_two_clock_values_that_are_both_possible",
    ),
    (
        "an event does not count itself",
        TIMESTAMP,
        "self._kn[c] += 1",
        "self._kn[c] += 0",
        f"{WORLD}::test_what_happened_before_is_less",
    ),
    (
        "counts of a message are learnt at the wrong clock values",
        TIMESTAMP,
        "stamp.kn[i - gap]",
        "stamp.kn[i]",
        f"{WORLD}::test_stamps_are_those_of_the_printed_program",
    ),
    (
        "an own value from the future is waited for",
        TIMESTAMP,
        "if self._high > now + self.guarantees.epsilon or not all(",
        "if not all(",
        f"{STAMPS}::test_a_value_from_the_future_is_reset_not_waited_for",
    ),
    (
        "a received value from the future is believed",
        TIMESTAMP,
        "        and stamp.high <= now + guarantees.epsilon\n",
        "",
        f"{STAMPS}::test_a_stamp_that_cannot_be_true_is_not_believed",
    ),
    (
        "the observer forgets that its own clock may be ε ahead",
        OBSERVER,
        "(c + guarantees.delta + guarantees.epsilon) // 100",
        "(c + guarantees.delta) // 100",
        f"{WORLD}::test_perfect_delivery_is_causal_complete_and_in_time",
    ),
    (
        "the queue is not checked before delivery",
        OBSERVER,
        "order = key if self.dial.checks_queue else (due, *key)",
        "order = (due, *key)",
        f"{EYE}::test_checking_the_queue_gives_a_message_the_time_of_the_smaller_one",
    ),
    (
        "a message with a clock far ahead is waited for",
        OBSERVER,
        "is_believed = is_possible(stamp, now, guarantees)",
        "is_believed = True",
        f"{EYE}::test_a_message_with_a_clock_far_ahead_does_not_hold_up_the_others",
    ),
    (
        "a corrupted queue is never looked through",
        OBSERVER,
        "if not now < self._audit_at <= now + self.guarantees.horizon:",
        "if self._audit_at is None:",
        f"{WORLD}::test_an_observer_recovers_from_any_state",
    ),
    (
        "what is left of the queue is not made a heap again",
        OBSERVER,
        "        heapq.heapify(self._queue)\n",
        "",
        f"{EYE}::test_the_queue_is_in_order_again_after_a_corrupted_entry_left",
    ),
    (
        "a duplicate is delivered again",
        OBSERVER,
        "if frame.message.id in self._pending or frame.message.id in self._delivered:",
        "if frame.message.id in self._pending:",
        f"{EYE}::test_a_duplicate_is_counted_and_not_delivered_again",
    ),
    (
        "c = ε does not fit: it takes a bit more where ε is a power of two",
        TIMESTAMP,
        "self._c_bits = guarantees.epsilon.bit_length()",
        "self._c_bits = (guarantees.epsilon - 1).bit_length()",
        f"{STAMPS}::test_c_equal_to_epsilon_is_believed_and_survives_its_encoding",
    ),
    (
        "c = ε is not believed, as the paper has c < ε",
        TIMESTAMP,
        "0 <= stamp.c <= guarantees.epsilon",
        "0 <= stamp.c < guarantees.epsilon",
        f"{STAMPS}::test_c_equal_to_epsilon_is_believed_and_survives_its_encoding",
    ),
    (
        "an observer forgets a copy a tick early",
        OBSERVER,
        "if when < before]",
        "if when <= before]",
        f"{EYE}::test_the_last_copy_that_can_come_is_still_known",
    ),
    (
        "an observer follows a clock that is set back within ε",
        OBSERVER,
        "if not tick <= self._now <= tick + self.guarantees.epsilon:",
        "if tick != self._now:",
        f"{WORLD}::test_clocks_set_back_within_epsilon_change_neither_order_nor_completeness",
    ),
    (
        "an observer follows a clock that is set back by all of ε",
        OBSERVER,
        "if not tick <= self._now <= tick + self.guarantees.epsilon:",
        "if not tick <= self._now < tick + self.guarantees.epsilon:",
        f"{EYE}::test_a_clock_set_back_within_epsilon_changes_nothing_that_was_decided",
    ),
    (
        "an observer waits for a clock that was set back by far",
        OBSERVER,
        "if not tick <= self._now <= tick + self.guarantees.epsilon:",
        "if tick > self._now:",
        f"{EYE}::test_a_clock_set_back_by_more_than_epsilon_is_followed",
    ),
    (
        "what was delivered at a time that lies ahead is forgotten, not kept as of now",
        OBSERVER,
        "if when < before]",
        "if not before <= when <= self._now]",
        f"{EYE}::test_a_copy_of_what_was_delivered_is_known_after_a_clock_far_ahead_was_set_right",
    ),
    (
        "ids without a message in the queue are kept for ever",
        OBSERVER,
        "        self._pending = {e.message.id: e.received for e in self._queue}\n",
        "",
        f"{EYE}::test_a_message_that_it_thinks_it_holds_but_does_not_is_accepted_again",
    ),
    (
        "an idle observer never wakes to forget",
        OBSERVER,
        "elif self._delivered:",
        "elif False:",
        f"{EYE}::test_an_idle_observer_wakes_to_forget_what_it_delivered",
    ),
    (
        "a restored observer has forgotten its front",
        OBSERVER,
        "self._front = next(iter(rows.get(FRONT.name, {}).values()), ())",
        "self._front = ()",
        f"{RESTORE}::test_what_goes_behind_a_larger_timestamp_is_counted_across_a_restart",
    ),
    (
        "a restored observer goes by its clock, which was set back",
        OBSERVER,
        "self._now = max([*self._pending.values(), *self._delivered.values()], default=LONG_AGO)",
        "self._now = LONG_AGO",
        f"{RESTORE}::test_a_restart_with_a_clock_set_back_within_epsilon_starves_nothing",
    ),
    (
        "what was delivered is not saved",
        OBSERVER,
        "            out.saves.append((DELIVERED.name, message, self._now))\n",
        "            pass\n",
        f"{RESTORE}::test_a_copy_of_what_was_delivered_before_a_restart_is_a_duplicate",
    ),
    (
        "what is held is not saved",
        OBSERVER,
        "            out.saves.append((HELD.name, frame.message.id, held))\n",
        "            pass\n",
        f"{RESTORE}::test_restarts_change_neither_the_order_nor_completeness",
    ),
    (
        "what was delivered stays among what is held",
        OBSERVER,
        "            out.saves.append((HELD.name, entry.message.id, None))\n",
        "            pass\n",
        f"{RESTORE}::test_restarts_change_neither_the_order_nor_completeness",
    ),
    (
        "rows of what was delivered are never deleted",
        OBSERVER,
        "            out.saves += [(DELIVERED.name, id, None) for id in old]\n",
        "            pass\n",
        f"{RESTORE}::test_rows_are_as_many_as_messages_are_alive",
    ),
    (
        "a restored queue is in order of id, not of arrival",
        OBSERVER,
        "key=lambda held: held.ticket)",
        "key=lambda held: held.frame.message.seq)",
        f"{RESTORE}::test_equal_timestamps_go_in_order_of_arrival_across_a_restart",
    ),
    (
        "the kernel lets an arrival go before what was due at that tick",
        REORDER,
        "table[heap[0], DUE] <= limit",
        "table[heap[0], DUE] < limit",
        "tests/kernels/test_reorder.py::test_what_is_due_at_a_tick_goes_before_what_arrives_at_it",
    ),
    (
        "each batch starts its tickets anew",
        REORDER,
        "rows[:, TICKET] = np.arange(len(r)) + queue.clock[1]",
        "rows[:, TICKET] = np.arange(len(r))",
        "tests/kernels/test_reorder.py::test_equal_timestamps_of_two_batches_keep_their_order",
    ),
    (
        "a message is no violation if its direct effect went first",
        VIOLATIONS,
        "known[origin[m]] >= seq[m]",
        "known[origin[m]] > seq[m]",
        "tests/kernels/test_violations.py::test_counts_are_those_of_the_definition",
    ),
    (
        "clocks drift apart by one tick more than promised",
        DRIFT,
        "clock[p] + 1 - clock.min() > network.epsilon",
        "clock[p] - clock.min() > network.epsilon",
        "tests/kernels/test_drift.py::test_a_run_keeps_both_guarantees",
    ),
    (
        "a negative delay is taken as no delay",
        DRIFT,
        "while drawn < 0.0:",
        "while attempt < 1:",
        "tests/kernels/test_drift.py::test_delays_follow_the_law_of_the_paper",
    ),
    (
        "a trend is judged by its ends",
        CLAIMS,
        "is_held = min(ups) >= 0",
        "is_held = sum(ups) >= 0",
        "tests/papers/test_observer.py::test_a_trend_holds_step_by_step",
    ),
    (
        "what is starved leaves as it lies in the heap",
        OBSERVER,
        "for entry in sorted(starved, key=lambda e: e[:2]):",
        "for entry in starved:",
        f"{EYE}::test_what_leaves_because_the_clock_went_back_leaves_in_order",
    ),
    (
        "an arrival goes before what was due at that tick",
        OBSERVER,
        "        self._read_clock(now_us)\n        self._deliver_due(out)\n        if frame",
        "        self._read_clock(now_us)\n        if frame",
        f"{EYE}::test_what_is_due_at_a_tick_goes_before_what_arrives_at_it",
    ),
    (
        "a row of what is held is deleted only if it was due",
        OBSERVER,
        "        if self._durable:\n"
        "            out.saves.append((HELD.name, entry.message.id, None))",
        "        if self._durable and entry.due <= self._now:\n"
        "            out.saves.append((HELD.name, entry.message.id, None))",
        f"{RESTORE}::"
        "test_a_message_delivered_before_it_was_due_is_not_delivered_again_after_a_restart",
    ),
)
