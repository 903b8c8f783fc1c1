"""Deliberate bugs in VCube and its worlds, each with the test that must notice it."""

CORE = "src/beforehand/core/vcube.py"
CUBE = "src/beforehand/core/cube.py"
PACKETS = "src/beforehand/core/packets.py"
WORLD = "src/beforehand/sim/overlay.py"
AGENDA = "src/beforehand/sim/agenda.py"
TWIN = "src/beforehand/kernels/overlay/run.py"
HEAP = "src/beforehand/kernels/heap.py"

STEPS = "tests/core/test_vcube.py"
PAPER = "tests/core/test_vcube_paper.py"
OVERLAY = "tests/sim/test_overlay.py"

MUTANTS = [
    (
        "deliver without looking at the causes",
        CORE,
        "            if clock[origin] < seq:\n                return cause",
        "            if clock[origin] < 0:\n                return cause",
        f"{PAPER}::test_each_message_goes_to_each_node_once_and_causes_come_first",
    ),
    (
        "deliver past a gap in the messages of one origin",
        CORE,
        "        if clock[origin] < seq - 1:",
        "        if clock[origin] < 0:",
        f"{STEPS}::test_messages_of_one_origin_are_forwarded_and_delivered_in_their_order",
    ),
    (
        "forward past a gap in the messages of one origin",
        CORE,
        "        if self._clock[origin] < seq - 1 and not self._has_passed((origin, seq - 1)):",
        "        if self._nodes < 0:",
        f"{STEPS}::test_messages_of_one_origin_are_forwarded_and_delivered_in_their_order",
    ),
    (
        "remember every delivery until the next broadcast",
        CORE,
        "        if len(self._news) > NEWS_PER_NODE * self._nodes:",
        "        if self._nodes < 0:",
        f"{STEPS}::test_a_node_that_only_listens_remembers_a_bounded_number_of_entries",
    ),
    (
        "put off what is due today",
        AGENDA,
        "            insort(self._left, event, key=neg)",
        "            self._left.insert(0, event)",
        "tests/sim/test_agenda.py::test_it_is_a_queue_ordered_by_time_and_ticket",
    ),
    (
        "take a pending message that comes again for a new one",
        CORE,
        "        elif id in self._pending:",
        "        elif self._nodes < 0:",
        f"{STEPS}::test_a_pending_message_that_comes_again_is_received_and_delivered_once",
    ),
    (
        "never hold anything back",
        CORE,
        "        if not limit or not self._aggregates:",
        "        if limit >= 0:",
        f"{STEPS}::test_a_message_is_held_back_from_those_who_must_get_a_cause_from_here_too",
    ),
    (
        "hold back from all children",
        CORE,
        "                    worst, awaited = height, entry",
        "                    worst, awaited = limit, entry",
        f"{PAPER}::test_figure_5_node_4_does_not_wait_for_what_5_gets_from_somebody_else",
    ),
    (
        "look only at the entries that changed",
        CORE,
        "            worst, awaited = previous.postponed, previous.awaited",
        "            worst, awaited = 0, previous.awaited",
        f"{PAPER}::test_the_core_sends_and_delivers_what_algorithm_2_does",
    ),
    (
        "put the message that made the packet leave first",
        CORE,
        "        for _, before, copy in sorted(judged):",
        "        for _, before, copy in sorted(judged, reverse=True):",
        f"{OVERLAY}::test_no_delivery_is_later_with_aggregation_if_the_causes_are_the_same",
    ),
    (
        "send a released message to all its children again",
        CORE,
        "            for level in range(copy.postponed + 1, before + 1):",
        "            for level in range(copy.postponed + 1, copy.height + 1):",
        f"{PAPER}::test_section_4_4_second_example_nothing_is_sent_twice",
    ),
    (
        "carry the whole clock each time",
        CORE,
        "        self._news.clear()",
        "        pass",
        f"{STEPS}::test_a_message_carries_only_the_entries_that_changed",
    ),
    (
        "leave the cluster of a failed child alone",
        CORE,
        "                if level > served or self._child[level] != before[level]:",
        "                if level > served:",
        f"{STEPS}::test_the_next_live_node_takes_over_the_cluster_of_a_child_that_fails",
    ),
    (
        "leave the messages of a dead origin alone",
        CORE,
        "frozenset(i for i, up in enumerate(live) if is_root or not up)",
        "frozenset(i for i, up in enumerate(live) if is_root)",
        f"{STEPS}::test_whoever_holds_a_message_of_a_dead_origin_sends_it_to_everybody",
    ),
    (
        "take a duplicate for nothing but a duplicate",
        CORE,
        "        if height > copy.height:",
        "        if height > self.dimension:",
        f"{STEPS}::test_a_duplicate_with_a_larger_share_is_served_beyond_what_was_done",
    ),
    (
        "never forget",
        CORE,
        "            del self._kept[self._by_age.popleft().message.id]",
        "            self._by_age.popleft()",
        f"{STEPS}::test_a_message_is_kept_no_longer_than_asked",
    ),
    (
        "search a cluster from its end",
        CUBE,
        "    for offset in range(1 << (level - 1)):\n        if live",
        "    for offset in reversed(range(1 << (level - 1))):\n        if live",
        "tests/core/test_cube.py::test_the_first_live_node_of_a_cluster_is_the_first_in_its_order",
    ),
    (
        "forget the header of a packet",
        PACKETS,
        "            room = mtu_bytes - HEADER_BYTES",
        "            room = mtu_bytes",
        f"{STEPS}::test_packing_counts_payload_entries_and_header",
    ),
    (
        "send all copies at once",
        WORLD,
        "            free_us += spec.transmit_us",
        "            free_us = max(free_us, ready_us + spec.transmit_us)",
        f"{OVERLAY}::test_copies_leave_one_after_the_other",
    ),
    (
        "draw the way of the first message of a packet",
        WORLD,
        "            origin, seq = packet.messages[-1].id",
        "            origin, seq = packet.messages[0].id",
        f"{OVERLAY}::test_no_delivery_is_later_with_aggregation_if_the_causes_are_the_same",
    ),
    (
        "a twin that overlooks the previous message",
        TWIN,
        "        worst = state.postponed[node, m - 1]\n",
        "        worst = 0\n",
        "tests/kernels/overlay/test_run.py::test_the_twin_gives_the_same_packets_and_events",
    ),
    (
        "a twin that does not release the next message of an origin",
        TWIN,
        "if later % fixed.messages and has(sets, node, HELD, later):",
        "if False:",
        "tests/kernels/overlay/test_run.py::test_the_twin_gives_the_same_packets_and_events",
    ),
    (
        "a twin that does not look at those held back from as many clusters",
        TWIN,
        "if height >= state.postponed[node, item]:",
        "if height > state.postponed[node, item]:",
        "tests/kernels/overlay/test_run.py::test_the_twin_gives_the_same_packets_and_events",
    ),
    (
        "a calendar that takes tomorrow for today",
        "src/beforehand/kernels/calendar.py",
        "    if due <= counts[DAY]:\n",
        "    if due <= counts[DAY] + 1:\n",
        "tests/kernels/test_calendar.py::test_long_lists_and_pages_that_are_used_again",
    ),
    (
        "a heap that overlooks one of the four below",
        HEAP,
        "        for i in range(below + 1, below + 4):",
        "        for i in range(below + 1, below + 3):",
        "tests/kernels/overlay/test_run.py::test_the_heap_sorts_many_with_ties",
    ),
]
