"""Deliberate bugs in the heart of the product, each with the test that must notice it."""

BARRIER = "src/beforehand/core/barrier.py"
WAITING = "src/beforehand/core/waiting.py"
VECTOR = "src/beforehand/core/vector.py"
ORDER = "src/beforehand/core/order.py"
UNORDERED = "src/beforehand/core/unordered.py"
ORACLE = "src/beforehand/check/oracle.py"

MUTANTS = [
    (
        "skip the barrier check",
        WAITING,
        "if delivered.get(origin, LONG_AGO) < seq and seq > horizon_us:\n"
        "                entry = Pending(message, now_us, index)",
        "if False:\n                entry = Pending(message, now_us, index)",
        "tests/core/test_barrier.py::test_an_effect_waits_for_its_cause",
    ),
    (
        "look only at the first predecessor",
        WAITING,
        "for index in range(entry.satisfied, len(past)):",
        "for index in range(entry.satisfied, min(1, len(past))):",
        "tests/core/test_waiting.py"
        "::test_any_graph_of_predecessors_is_delivered_completely_and_in_order",
    ),
    (
        "forget the own previous message",
        BARRIER,
        "            origin, seq = message.id\n            barrier[origin] = seq",
        "            origin, seq = message.id\n            if origin == self.node:\n"
        "                continue\n            barrier[origin] = seq",
        "tests/core/test_barrier.py::test_messages_of_one_origin_are_delivered_in_their_order",
    ),
    (
        "off by one in the duplicate check",
        BARRIER,
        "elif delivered.get(origin, LONG_AGO) >= seq or message.id in pending:",
        "elif delivered.get(origin, LONG_AGO) > seq or message.id in pending:",
        "tests/core/test_barrier.py::test_a_message_that_comes_again_is_not_delivered_again",
    ),
    (
        "take what waits already for new",
        BARRIER,
        "elif delivered.get(origin, LONG_AGO) >= seq or message.id in pending:",
        "elif delivered.get(origin, LONG_AGO) >= seq:",
        "tests/core/test_barrier.py"
        "::test_a_message_that_comes_again_while_it_waits_waits_on_since_it_first_came",
    ),
    (
        "leave those asleep who wait for what was passed over",
        WAITING,
        "            woken += waiters.pop(heappop(seqs), ())",
        "            woken += waiters.pop(seqs[0], ()) if seqs[0] == seq else []\n"
        "            heappop(seqs)",
        "tests/core/test_waiting.py"
        "::test_a_later_message_of_the_origin_releases_those_who_wait_for_an_earlier_one",
    ),
    (
        "wake only the first who waits",
        WAITING,
        "woken += waiters.pop(heappop(seqs), ())",
        "woken += list(waiters.pop(heappop(seqs), ()))[:1]",
        "tests/core/test_waiting.py::test_all_who_wait_for_one_message_are_woken",
    ),
    (
        "deadlines to the letter of the paper",
        BARRIER,
        "if self.expires and not self._literal_deadlines:",
        "if False:",
        "tests/core/test_deadlines.py::test_the_fixed_deadlines_keep_causal_order",
    ),
    (
        "predecessors left out by the sender's own clock",
        BARRIER,
        "        if not self._literal_deadlines:\n            passed_us -=",
        "        if False:\n            passed_us -=",
        "tests/core/test_deadlines.py::test_the_fixed_deadlines_keep_causal_order",
    ),
    (
        "deliver at the instant of the own deadline",
        WAITING,
        "            if message.id[1] <= horizon_us:\n                del self.pending",
        "            if message.id[1] < horizon_us:\n                del self.pending",
        "tests/core/test_waiting.py"
        "::test_what_expires_with_its_predecessor_is_not_delivered_by_waking",
    ),
    (
        "drop too much from a minimal barrier",
        BARRIER,
        "if barrier.get(origin, LONG_AHEAD) <= seq:",
        "if origin in barrier:",
        "tests/core/test_barrier.py::test_a_minimal_barrier_keeps_what_is_newer_than_the_cover",
    ),
    (
        "forget to reset the barrier",
        BARRIER,
        "        self._barrier.clear()\n",
        "",
        "tests/core/test_barrier.py::test_a_literal_barrier_is_emptied_by_the_own_broadcast",
    ),
    (
        "keep the registry for ever",
        BARRIER,
        "if len(self._waiting.delivered) >= self._purge_at:",
        "if False:",
        "tests/core/test_barrier.py"
        "::test_the_co_delivered_registry_shrinks_with_lifetimes_and_only_grows_without",
    ),
    (
        "accept any deadline",
        ORDER,
        "        return lifetimes is None or lifetimes.is_valid(message.stamp, seq)",
        "        return True",
        "tests/core/test_barrier.py::test_a_deadline_too_far_ahead_is_refused_as_a_peers_error",
    ),
    (
        "do not save the sequence number",
        BARRIER,
        'out.saves.append(("own", "seq", self._last_seq))',
        "pass",
        "tests/core/test_restore.py::test_a_restored_node_goes_on_where_it_was",
    ),
    (
        "do not save what was delivered",
        BARRIER,
        'out.saves += [("delivered", origin, delivered[origin]) for origin in origins]',
        "pass",
        "tests/core/test_restore.py::test_a_restored_node_goes_on_where_it_was",
    ),
    (
        "a vector without the own last message",
        VECTOR,
        "tuple(clock.items())",
        "tuple((o, s) for o, s in clock.items() if o != self.node)",
        "tests/core/test_vector.py::test_the_own_sequence_is_kept",
    ),
    (
        "an oracle blind to transitivity",
        ORACLE,
        "self._known[node] |= {message} | self.pasts.get(message, frozenset())",
        "self._known[node] |= {message}",
        "tests/core/test_deadlines.py::test_the_judge_follows_causes_through_what_a_node_missed",
    ),
    (
        "purge the registry a second early",
        BARRIER,
        "for o, seq in delivered.items() if seq <= self._horizon_us]",
        "for o, seq in delivered.items() if seq <= self._horizon_us + 1_000_000]",
        "tests/core/test_restore.py::test_what_is_alive_for_another_second_is_not_forgotten",
    ),
    (
        "purge the registry of no order a second early",
        UNORDERED,
        "if id[1] <= self._horizon_us]:",
        "if id[1] <= self._horizon_us + 1_000_000]:",
        "tests/core/test_restore.py::test_what_is_alive_for_another_second_is_not_forgotten",
    ),
    (
        "let the horizon follow a clock that is set back",
        BARRIER,
        "self._horizon_us = max(self._horizon_us, now_us)",
        "self._horizon_us = now_us",
        "tests/core/test_restore.py::test_a_message_given_up_stays_so_when_the_clock_is_set_back",
    ),
    (
        "let the horizon of no order follow a clock that is set back",
        UNORDERED,
        "self._horizon_us = max(self._horizon_us, now_us)",
        "self._horizon_us = now_us",
        "tests/core/test_restore.py"
        "::test_without_order_too_what_was_forgotten_stays_so_when_the_clock_is_set_back",
    ),
    (
        "screen by the clock",
        ORDER,
        "after = now_us if now_us > self._horizon_us else self._horizon_us",
        "after = now_us",
        "tests/core/test_restore.py"
        "::test_a_message_given_up_is_not_welcome_when_the_clock_is_set_back",
    ),
    (
        "screen by the clock without order",
        ORDER,
        "after = now_us if now_us > self._horizon_us else self._horizon_us",
        "after = now_us",
        "tests/core/test_restore.py"
        "::test_without_order_too_what_was_forgotten_is_not_welcome_when_the_clock_is_set_back",
    ),
    (
        "leave an expired entry of the barrier saved",
        BARRIER,
        "                del self._barrier[origin]\n                if self.durable:",
        "                del self._barrier[origin]\n                if False:",
        "tests/core/test_restore.py"
        "::test_a_predecessor_that_expired_on_every_clock_is_not_named_after_a_restart",
    ),
    (
        "keep the barrier of a node that only listens",
        BARRIER,
        "if len(self._barrier) >= self._purge_barrier_at:",
        "if False:",
        "tests/core/test_registries.py"
        "::test_a_node_that_only_listens_forgets_the_barrier_that_it_never_sends",
    ),
    (
        "set the timer of the order once only",
        BARRIER,
        "        self._armed_us = LONG_AHEAD\n        self._expire",
        "        self._expire",
        "tests/core/test_barrier.py::test_after_one_deadline_the_timer_is_set_for_the_next",
    ),
    (
        "call delivered whatever is older",
        BARRIER,
        "if seq == last or (seq < last and seq > self._horizon_us):",
        "if seq <= last:",
        "tests/core/test_barrier.py"
        "::test_what_was_given_up_is_not_called_delivered_because_a_later_one_was",
    ),
    (
        "do not watch a deadline earlier than that of the cause",
        WAITING,
        "if self._expires and seq >= id[1] and id not in self._careless:",
        "if False:",
        "tests/core/test_barrier.py"
        "::test_a_message_with_an_earlier_deadline_than_its_predecessor_expires_on_time",
    ),
    (
        "leave an evicted message in the list under its cause",
        WAITING,
        "            return False\n        self._unpark(entry)",
        "            return False",
        "tests/core/test_registries.py"
        "::test_what_is_evicted_and_comes_again_while_its_cause_never_does_is_parked_once",
    ),
    (
        "leave what expired first in the list under its cause",
        WAITING,
        "                self._unpark(entry)\n                self._lapsed",
        "                self._lapsed",
        "tests/core/test_registries.py"
        "::test_what_expired_before_its_cause_is_not_parked_until_the_cause_expires",
    ),
    (
        "never sweep the deadlines",
        WAITING,
        "if len(self._deadlines) > DEADLINES_MIN + 4 * len(self.pending):",
        "if False:",
        "tests/core/test_registries.py"
        "::test_the_causes_of_what_was_evicted_are_not_watched_for_ever",
    ),
    (
        "sweep away the deadlines of those who wait",
        WAITING,
        "if self._waiters.get(origin, {}).get(seq) or (origin, seq) in self.pending:\n"
        "                watched",
        "if (origin, seq) in self.pending:\n                watched",
        "tests/core/test_waiting_model.py::test_the_same_in_long_runs",
    ),
    (
        "sweep away the deadlines of the careless",
        WAITING,
        "if self._waiters.get(origin, {}).get(seq) or (origin, seq) in self.pending:\n"
        "                watched",
        "if self._waiters.get(origin, {}).get(seq):\n                watched",
        "tests/core/test_waiting_model.py::test_the_same_in_long_runs",
    ),
    (
        "forget for which predecessor a message waits",
        WAITING,
        "                entry.satisfied = index\n                self._park",
        "                self._park",
        "tests/core/test_waiting_model.py::test_the_same_in_long_runs",
    ),
    (
        "keep what was overtaken",
        ORDER,
        "        late.clear()\n",
        "",
        "tests/core/test_registries.py"
        "::test_what_was_overtaken_by_its_own_origin_is_counted_and_forgotten",
    ),
    (
        "vector clocks that do not count what was overtaken",
        VECTOR,
        "        if self._waiting.late:",
        "        if False:",
        "tests/core/test_registries.py"
        "::test_what_was_overtaken_by_its_own_origin_is_counted_and_forgotten",
    ),
    (
        "welcome a message that names itself as its cause",
        ORDER,
        " and id not in message.past",
        "",
        "tests/core/test_barrier.py::test_a_message_that_names_itself_as_its_cause_is_refused",
    ),
    (
        "welcome it among others",
        ORDER,
        " or message.id in message.past:\n            return False",
        ":\n            return False",
        "tests/core/test_barrier.py::test_a_message_that_names_itself_as_its_cause_is_refused",
    ),
    (
        "keep the registry of no order for ever",
        UNORDERED,
        "if len(self._delivered) >= self._purge_at:",
        "if False:",
        "tests/core/test_registries.py"
        "::test_what_a_node_that_only_speaks_has_delivered_is_forgotten_when_it_expires",
    ),
    (
        "leave forgotten deliveries saved",
        UNORDERED,
        '                out.saves.append(("delivered", id, None))',
        "                pass",
        "tests/core/test_registries.py"
        "::test_what_a_node_that_only_speaks_has_delivered_is_forgotten_when_it_expires",
    ),
    (
        "broadcast while regained messages wait",
        BARRIER,
        "        self._refuse_while_own_wait()\n",
        "",
        "tests/core/test_restore.py"
        "::test_a_node_does_not_broadcast_while_its_regained_messages_wait_for_causes",
    ),
]
