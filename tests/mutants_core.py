"""Deliberate bugs in the heart of the product, each with the test that must notice it."""

BARRIER = "src/beforehand/core/barrier.py"
WAITING = "src/beforehand/core/waiting.py"
EPIDEMIC = "src/beforehand/core/epidemic.py"
VECTOR = "src/beforehand/core/vector.py"
CACHE = "src/beforehand/core/cache.py"
WORLD = "src/beforehand/sim/contacts.py"
ORACLE = "src/beforehand/check/oracle.py"
ORDER = "src/beforehand/core/order.py"

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
        "if waiters and min(waiters) < seq:",
        "if False:",
        "tests/core/test_waiting.py"
        "::test_a_later_message_of_the_origin_releases_those_who_wait_for_an_earlier_one",
    ),
    (
        "wake only the first who waits",
        WAITING,
        "woken = waiters.pop(seq, [])",
        "woken = waiters.pop(seq, [])[:1]",
        "tests/core/test_waiting.py::test_all_who_wait_for_one_message_are_woken",
    ),
    (
        "deadlines to the letter of the paper",
        BARRIER,
        "        if self._literal_deadlines:\n            # One's own",
        "        if True:\n            # One's own",
        "tests/core/test_deadlines.py::test_the_fixed_deadlines_keep_causal_order",
    ),
    (
        "predecessors left out by the sender's own clock",
        BARRIER,
        "now_us if self._literal_deadlines else now_us - self._lifetimes.skew_us",
        "now_us",
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
        "elif seq > until or (origin == node and seq > last_seq):",
        "elif origin == node and seq > last_seq:",
        "tests/core/test_barrier.py::test_a_deadline_too_far_ahead_is_refused_as_a_peers_error",
    ),
    (
        "do not save the sequence number",
        BARRIER,
        'out.saves.append(("own", "seq", seq))',
        "pass",
        "tests/core/test_barrier.py::test_a_restored_node_goes_on_where_it_was",
    ),
    (
        "do not save what was delivered",
        BARRIER,
        'out.saves += [("delivered", origin, seq), ("barrier", origin, seq)]',
        'out.saves += [("barrier", origin, seq)]',
        "tests/check/test_fuzz_contacts.py::test_a_few_hundred_seeds_find_nothing[causal]",
    ),
    (
        "a vector without the own last message",
        VECTOR,
        "message = Message((self.node, seq), tuple(clock.items()), payload)",
        "message = Message(\n            (self.node, seq),\n"
        "            tuple((o, s) for o, s in clock.items() if o != self.node),\n"
        "            payload,\n        )",
        "tests/core/test_vector.py::test_the_own_sequence_is_kept",
    ),
    (
        "ask every neighbour that offers",
        EPIDEMIC,
        ".difference(self._asking)",
        "",
        "tests/core/test_epidemic.py::test_nothing_is_asked_of_two_neighbours_at_once",
    ),
    (
        "do not ask elsewhere when a link goes down",
        EPIDEMIC,
        "            self._ask_elsewhere(now_us, link.asked, out)\n\n    def on_timer",
        "            pass\n\n    def on_timer",
        "tests/core/test_epidemic.py"
        "::test_a_link_that_goes_down_forgets_what_was_under_way_and_asks_elsewhere",
    ),
    (
        "do not pass news on",
        EPIDEMIC,
        "            self._store(now_us, welcome, out)\n"
        "            self._announce_news(now_us, out)",
        "            self._store(now_us, welcome, out)",
        "tests/sim/test_contacts.py::test_a_crowd_of_hundreds_equals_the_ideal_flood",
    ),
    (
        "ask again for what was evicted",
        EPIDEMIC,
        "            lacking -= self._evicted\n",
        "            pass\n",
        "tests/check/test_fuzz_contacts.py::test_neighbours_with_full_caches_come_to_rest",
    ),
    (
        "never repeat a request",
        EPIDEMIC,
        "                    self._ask(now_us, peer, link, frozenset(link.asked), out)",
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
        "an oracle blind to transitivity",
        ORACLE,
        "                known |= self.pasts.get(earlier, frozenset())\n",
        "",
        "tests/check/test_oracle.py"
        "::test_happened_before_is_transitive_even_through_what_a_node_missed",
    ),
]
