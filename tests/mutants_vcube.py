"""Deliberate bugs in VCube and its worlds, each with the test that must notice it."""

NODE = "src/beforehand/core/vcube.py"
CORE = "src/beforehand/core/aggregation.py"
KEEPING = "src/beforehand/core/keeping.py"
CUBE = "src/beforehand/core/cube.py"
PACKETS = "src/beforehand/core/packets.py"
WORLD = "src/beforehand/sim/overlay.py"
AGENDA = "src/beforehand/sim/agenda.py"
TWIN = "src/beforehand/kernels/overlay/run.py"
HEAP = "src/beforehand/kernels/heap.py"

STEPS = "tests/core/test_vcube.py"
KEPT = "tests/core/test_vcube_keeping.py"
BACK = "tests/core/test_vcube_restore.py"
LIARS = "tests/core/test_vcube_liars.py"
AWAY = "tests/core/test_vcube_away.py::test_whoever_comes_back_goes_on"
PAPER = "tests/core/test_vcube_paper.py"
FAILED = "tests/core/test_failed_inputs.py"
OVERLAY = "tests/sim/test_overlay.py"
TWIN_TEST = (
    "tests/kernels/overlay/test_run.py"
    "::test_the_twin_gives_the_same_packets_and_events[8-5-aggregated]"
)

MUTANTS = [
    (
        "forget the causes before the message is signed",
        NODE,
        "        if self._proofs is not None:\n            # The signer",
        "        self._news.clear()\n"
        "        if self._proofs is not None:\n            # The signer",
        f"{FAILED}::test_a_message_after_a_signer_failed_named_no_causes_and_overtook_them",
    ),
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
        "        if id in self._pending:",
        "        if self._nodes < 0:",
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
        NODE,
        "        self._news.clear()",
        "        pass",
        f"{STEPS}::test_a_message_carries_only_the_entries_that_changed",
    ),
    (
        "leave the cluster of a failed child alone",
        NODE,
        "                if level > served or child != before[level] or child == peer:",
        "                if level > served or child == peer:",
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
        "        elif height > copy.height:",
        "        elif height > self.dimension:",
        f"{STEPS}::test_a_duplicate_with_a_larger_share_is_served_beyond_what_was_done",
    ),
    (
        "never forget",
        KEEPING,
        "            message = self._kept.pop(id).message",
        "            message = self._kept[id].message",
        f"{STEPS}::test_a_message_is_kept_no_longer_than_asked",
    ),
    (
        "serve postponed clusters again when a link changes",
        NODE,
        "            for level in range(copy.postponed + 1, copy.height + 1):",
        "            for level in range(1, copy.height + 1):",
        f"{STEPS}::test_what_is_held_back_from_a_cluster_stays_so_when_a_link_changes",
    ),
    (
        "serve a late duplicate from the bottom",
        CORE,
        "            self._serve(message, copy.height, height, out)",
        "            self._serve(message, 0, height, out)",
        f"{STEPS}::test_a_late_duplicate_is_not_served_from_the_bottom",
    ),
    (
        "count the time for which a message is kept from its last duplicate",
        CORE,
        "            self._raise(copy, height, out)\n",
        "            self._raise(copy, height, out)\n"
        "            self._book.ages.remove((0, message.id))\n"
        "            self._book.ages.append((self._book.age_us, message.id))\n",
        f"{KEPT}::test_a_duplicate_does_not_lengthen_the_time_for_which_a_message_is_kept",
    ),
    (
        "pass over without closing under causes",
        KEEPING,
        "            if last > self._book.gone[origin]:",
        "            if last > self._book.gone[origin] and (origin, last) in lost:",
        f"{KEPT}::test_what_is_passed_over_takes_its_causes_along",
    ),
    (
        "forget what is still pending",
        KEEPING,
        "        self._kept[id] = copy\n        self._save(MESSAGES, id, copy.message, out)",
        "        self._kept[id] = copy\n        self._date([id])",
        f"{KEPT}::test_messages_are_forgotten_in_the_order_of_their_deliveries",
    ),
    (
        "pass over in silence",
        KEEPING,
        '        out.losses += [("drop", id) for id in lost]',
        "        pass",
        f"{KEPT}::test_what_nobody_keeps_is_passed_over_and_told",
    ),
    (
        "let go of what was held back when it is given up",
        KEEPING,
        "        self._release(held, out)",
        "        pass",
        f"{KEPT}::test_what_is_given_up_here_is_forwarded_all_the_same",
    ),
    (
        "go on looking at the causes behind the one that is waited for",
        KEEPING,
        "            copy.causes = iter(copy.message.past)",
        "            pass",
        f"{KEPT}::test_what_waits_for_something_else_too_goes_on_waiting",
    ),
    (
        "answer before the packets",
        KEEPING,
        "        out.sends.append((source, Answer(",
        "        out.sends.insert(0, (source, Answer(",
        f"{KEPT}::test_an_answer_is_what_is_kept_and_what_is_gone",
    ),
    (
        "never ask about what waits",
        KEEPING,
        "            self._ask_about(oldest, out)",
        "            pass",
        f"{KEPT}::test_what_waits_for_long_is_asked_for",
    ),
    (
        "never ask who came up",
        NODE,
        "                self._ask(peer, out)",
        "                pass",
        AWAY,
    ),
    (
        "wait for a clock to catch up",
        KEEPING,
        "        elif self._book.is_watching:",
        "        elif self._nodes < 0:",
        f"{KEPT}::test_nobody_waits_for_a_clock_to_catch_up",
    ),
    (
        "lose the own number in a crash",
        KEEPING,
        "        self._save(CLOCK, me, seq, out)",
        "        pass",
        f"{BACK}::test_after_a_restart_nothing_comes_twice_and_no_number_is_used_again",
    ),
    (
        "restore without the news",
        KEEPING,
        "        self._news = sorted(rows.get(NEWS.name, {}).items())",
        "        self._news = []",
        f"{BACK}::test_after_a_restart_a_message_names_what_was_delivered_before",
    ),
    (
        "restore without what is gone",
        KEEPING,
        "            self._book.gone[origin] = seq\n        self._news",
        "            pass\n        self._news",
        f"{BACK}::test_after_a_restart_what_is_gone_is_gone_and_what_was_missed_was_missed",
    ),
    (
        "take everybody at the word of the last life",
        KEEPING,
        "        self._book.unheard = set(range(self._nodes)) - {self._self}",
        "        pass",
        f"{BACK}::test_after_a_restart_what_is_kept_goes_to_whoever_is_said_to_be_up",
    ),
    (
        "forget a larger share in a crash",
        KEEPING,
        "            self._save(HEIGHTS, copy.message.id, height, out)",
        "            pass",
        f"{BACK}::test_after_a_restart_it_answers_for_as_many_clusters_as_before",
    ),
    (
        "answer one without memory as if nothing was wrong",
        KEEPING,
        "        if theirs[source] < clock[source]:",
        "        if self._nodes < 0:",
        f"{BACK}::test_who_asks_without_remembering_itself_is_told",
    ),
    (
        "speak on without memory",
        NODE,
        "        if self._book.is_forgetful:",
        "        if self._nodes < 0:",
        f"{BACK}::test_who_hears_of_messages_of_its_own_is_mute",
    ),
    (
        "forward another message under a known id",
        CORE,
        "        if copy.message is not message and copy.message != message:",
        "        if self._nodes < 0:",
        f"{BACK}::test_an_id_that_is_used_again_is_neither_delivered_nor_forwarded",
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
        "            free_us += transmit_us",
        "            free_us = max(free_us, ready_us + transmit_us)",
        f"{OVERLAY}::test_copies_leave_one_after_the_other",
    ),
    (
        "draw the way of the first message of a packet",
        WORLD,
        "            origin, seq = messages[-1].id",
        "            origin, seq = messages[0].id",
        f"{OVERLAY}::test_no_delivery_is_later_with_aggregation_if_the_causes_are_the_same",
    ),
    (
        "a twin that overlooks the previous message",
        TWIN,
        "        worst = state.postponed[node, m - 1]\n",
        "        worst = 0\n",
        TWIN_TEST,
    ),
    (
        "a twin that does not release the next message of an origin",
        TWIN,
        "if later % fixed.messages and has(sets, node, HELD, later):",
        "if False:",
        TWIN_TEST,
    ),
    (
        "a twin that does not look at those held back from as many clusters",
        TWIN,
        "if height >= state.postponed[node, item]:",
        "if height > state.postponed[node, item]:",
        TWIN_TEST,
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
    (
        "keep a gap for each time that something was passed over",
        KEEPING,
        "if spans and spans[-1][1] == first - 1:",
        "if False:",
        f"{KEPT}::test_gaps_that_follow_each_other_are_one",
    ),
    (
        "do not save that what was passed over is gone",
        KEEPING,
        "= last\n                self._save(GONE, origin, last, out)",
        "= last",
        f"{BACK}::test_after_a_restart_what_was_passed_over_is_told_to_who_asks",
    ),
    (
        "answer without what waits",
        KEEPING,
        "if id[1] > theirs[id[0]]]",
        "if theirs[id[0]] < id[1] <= clock[id[0]]]",
        f"{KEPT}::test_what_waits_here_is_sent_to_who_asks",
    ),
    (
        "deliver another message under the id of one that waits",
        CORE,
        "        if id in self._pending:",
        "        if id in self._pending and self._undelivered(id, iter(message.past)):",
        f"{KEPT}::test_another_message_under_the_id_of_one_that_waits_was_delivered_besides_it",
    ),
    (
        "overlook own messages among the causes of others",
        NODE,
        "for entry in m.past]",
        "for entry in ()]",
        f"{BACK}::test_a_message_that_names_what_we_never_said_kept_us_from_coming_back",
    ),
    (
        "keep the latest news, whatever their origins",
        CORE,
        "            self._news[:] = self._latest()",
        "            self._news[:] = self._news[self._nodes :]",
        f"{STEPS}::test_a_rare_cause_is_still_named_after_many_messages_of_another_origin",
    ),
    (
        "keep for ever what was skipped while it waited",
        KEEPING,
        "                self._date([id])\n                continue",
        "                continue",
        f"{KEPT}::test_a_message_that_was_skipped_while_it_waited_is_not_kept_for_ever",
    ),
    (
        "tell nobody of what was skipped",
        KEEPING,
        "        self._book.has_gained = True\n        out.losses",
        "        out.losses",
        f"{KEPT}::test_a_node_that_skipped_messages_asks_all_live_peers_once",
    ),
    (
        "tell nobody of what came without its share of the tree",
        NODE,
        "                    if keep_us and height < self._served(origin):",
        "                    if keep_us and height < 0:",
        "tests/check/test_vcube.py::test_a_clock_set_forward_beyond_retention_lost_a_message_in"
        "_silence[a child gets it from somebody else]",
    ),
    (
        "believe an answer that nobody asked for",
        KEEPING,
        "        if source not in self._book.awaited:",
        "        if self._nodes < 0:",
        f"{LIARS}::test_an_answer_that_nobody_asked_for_is_ignored",
    ),
    (
        "skip what nobody has signed",
        KEEPING,
        "        if answer.gone and self._is_plausible(answer.gone):",
        "        if answer.gone:",
        f"{LIARS}::test_an_answer_that_claims_what_nobody_signed_silenced_an_origin_for_ever",
    ),
    (
        "believe a claim without proof",
        NODE,
        "        if isinstance(frame, Known):  #",
        "        if self._nodes < 0:  #",
        f"{LIARS}::test_a_claim_to_know_messages_of_ours_silenced_us_for_ever",
    ),
    (
        "believe whatever a question claims",
        KEEPING,
        "        else:\n            if theirs[self._self]",
        "        if True:\n            if theirs[self._self]",
        f"{LIARS}::test_a_question_that_claims_messages_of_ours_silenced_us_for_ever",
    ),
    (
        "believe the causes that a liar names",
        NODE,
        "            if self._proofs is None:\n                named += [entry",
        "            if self._nodes:\n                named += [entry",
        f"{LIARS}::test_a_member_that_names_a_message_of_ours_ahead_of_time_waits_for_it",
    ),
    (
        "leave those waiting who named a message before it was broadcast",
        NODE,
        "            self._wake(message.id, out)",
        "            pass",
        f"{LIARS}::test_a_member_that_names_a_message_of_ours_ahead_of_time_waits_for_it",
    ),
    (
        "answer without proof",
        KEEPING,
        "            lacking = self._evidence(source, theirs, lacking) + lacking\n",
        "            pass\n",
        f"{LIARS}::test_what_is_gone_is_skipped_when_its_origin_has_signed_it",
    ),
    (
        "lose the proofs in a crash",
        KEEPING,
        "                self._save(LAST, origin, message, out)",
        "                pass",
        f"{LIARS}::test_what_is_gone_is_skipped_when_its_origin_has_signed_it",
    ),
    (
        "broadcast while own messages wait",
        NODE,
        "            named = [m.id for m in frame.messages]",
        "            named = [m.id for m in frame.messages if m.id[0] != me]",
        f"{LIARS}::test_a_node_that_regained_its_own_messages_does_not_broadcast_while_they_wait",
    ),
]
