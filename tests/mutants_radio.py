"""Ways to break the radio channel, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

RADIO = "src/beforehand/sim/radio.py"
PLACES = "src/beforehand/sim/places.py"
TWIN = "src/beforehand/kernels/cells/air.py"
TESTS = "tests/sim/test_radio.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a queue has no end",
        RADIO,
        "        if len(queue) == self.radio.queue_max:\n",
        "        if len(queue) < 0:\n",
        f"{TESTS}::test_a_frame_that_finds_a_full_queue_is_thrown_away_and_counted",
    ),
    (
        "the compiled channel: who has sent is still in the queue",
        TWIN,
        "    row[QUEUED] -= 1\n",
        "",
        f"{TESTS}::test_the_compiled_channel_is_the_channel",
    ),
    (
        "hidden terminals are heard",
        RADIO,
        "audience = tuple(self.neighbours[node])",
        "audience = tuple(n for n in range(len(self.neighbours)) if n != node)",
        f"{TESTS}::test_hidden_terminals_do_not_hear_each_other_and_collide_at_the_one_between",
    ),
    (
        "a busy medium does not stop the countdown",
        RADIO,
        "            if self._due_us[node] > now_us + self.radio.sense_us:\n",
        "            if self._due_us[node] > FOREVER_US:\n",
        f"{TESTS}::test_a_busy_medium_freezes_the_backoff",
    ),
    (
        "slots go on counting while the medium is busy",
        RADIO,
        "        self._count_us[node] = now_us + self.radio.difs_us\n        if self._queue[node]:",
        "        self._freeze(now_us, node)\n"
        "        self._count_us[node] = now_us + self.radio.difs_us\n        if self._queue[node]:",
        f"{TESTS}::test_a_busy_medium_freezes_the_backoff",
    ),
    (
        "the slot that was interrupted counts",
        RADIO,
        "gone = (now_us - self._count_us[node]) // self.radio.slot_us",
        "gone = -((self._count_us[node] - now_us) // self.radio.slot_us)",
        f"{TESTS}::test_a_busy_medium_freezes_the_backoff",
    ),
    (
        "an own transmission does not abort a reception",
        RADIO,
        "        self._locked[node] = NOBODY\n        self._start_us[node] = now_us\n",
        "        self._start_us[node] = now_us\n",
        f"{TESTS}::test_who_transmits_receives_nothing_meanwhile",
    ),
    (
        "a node that transmits locks on what it hears",
        RADIO,
        "        if self._is_sending[node]:\n            return\n",
        "",
        f"{TESTS}::test_who_transmits_receives_nothing_meanwhile",
    ),
    (
        "an overlap within one slot is not a collision",
        RADIO,
        "                if is_together or not self.radio.capture:\n",
        "                if not is_together and not self.radio.capture:\n",
        f"{TESTS}::test_starts_that_are_closer_than_carrier_sense_collide",
    ),
    (
        "carrier sense takes no time",
        RADIO,
        "self._due_us[node] > now_us + self.radio.sense_us",
        "self._due_us[node] > now_us",
        f"{TESTS}::test_starts_that_are_closer_than_carrier_sense_collide",
    ),
    (
        "every first frame survives",
        RADIO,
        "if is_together or not self.radio.capture:",
        "if is_together:",
        f"{TESTS}::test_a_switch_says_whether_the_first_frame_survives_a_later_one",
    ),
    (
        "airtime without the preamble",
        RADIO,
        "return 192 + ",
        "return ",
        f"{TESTS}::test_airtime_has_the_preamble_and_whole_symbols",
    ),
    (
        "a frame is taken from those who came late",
        RADIO,
        "for peer in self._audience[node]:",
        "for peer in self.neighbours[node]:",
        f"{TESTS}::test_who_is_in_range_when_a_frame_starts_has_all_of_it",
    ),
    (
        "a backoff is drawn from a sequence that all share",
        RADIO,
        "draw = mix(mix(mix(self._key, node), self._sent[node]), self._draws[node])",
        "draw = self._key = mix(self._key, 1)",
        f"{TESTS}::test_a_backoff_does_not_depend_on_who_asks_first",
    ),
    (
        "a simple MAC does not listen again after its backoff",
        RADIO,
        'if self.radio.mac == "csma" and self._senses(now_us, node):',
        "if False:",
        f"{TESTS}::test_a_simple_backoff_goes_on_and_is_drawn_again_if_the_channel_is_busy_then",
    ),
    (
        "the grid looks at its own row only",
        PLACES,
        "for y in (row - 1, row, row + 1)",
        "for y in (row,)",
        f"{TESTS}::test_the_grid_looks_across_its_lines",
    ),
    (
        "the twin does not draw again after its own frame",
        TWIN,
        "    if rules.mac != NONE:\n        _draw(state, rules, node)\n",
        "",
        f"{TESTS}::test_the_compiled_channel_is_the_channel",
    ),
)
