"""Ways to break flow control, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

FLOW = "src/beforehand/core/flow.py"
LINK_FLOW = "src/beforehand/core/link_flow.py"
PACED = "src/beforehand/core/paced.py"
EPIDEMIC = "src/beforehand/core/epidemic.py"
SIZES = "src/beforehand/core/sizes.py"
PACED_NODE = "src/beforehand/runtime/paced_node.py"
TEST = "tests/core/test_flow.py"
SEEDS = "tests/check/test_group.py"
NODE_TEST = "tests/runtime/test_node.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "I1: requests beyond the window",
        FLOW,
        "        if flow.unanswered(link) > self._limits.window // 2:\n            return\n",
        "        most += flow.unanswered(link)\n",
        f"{TEST}::test_no_more_is_requested_than_the_window_until_half_of_it_is_answered",
    ),
    (
        "I1: a peer may request any number",
        FLOW,
        "if len(flow.serve) + len(ids) > self._limits.window:",
        "if len(ids) > self._limits.window:",
        f"{TEST}::test_a_peer_that_requests_more_than_the_window_is_cut_off",
    ),
    (
        "I2: an offer is requested from two peers",
        FLOW,
        "if i not in asking and i[1] > horizon_us",
        "if i[1] > horizon_us",
        f"{SEEDS}::test_seeds_of_the_group_find_nothing",
    ),
    (
        "I3: offers that do not fit are forgotten",
        FLOW,
        "            flow.has_dropped_offers = True\n",
        "",
        f"{TEST}::test_offers_that_do_not_fit_are_heard_of_again_when_half_of_the_others_are_done",
    ),
    (
        "I3: own messages that may not be pushed are not announced either",
        FLOW,
        "                flow.tell.update(dict.fromkeys([message.id for message in messages]))\n",
        "                pass\n",
        f"{TEST}::test_own_messages_for_a_peer_without_room_are_announced_when_too_many_wait",
    ),
    (
        "I3: offers that were announced again count as new ones, for ever",
        FLOW,
        "        ids = ids.difference(flow.offers) if flow.offers else ids\n",
        "",
        f"{TEST}::test_offers_that_are_announced_again_are_the_same_offers",
    ),
    (
        "I4: announcements regardless of room",
        LINK_FLOW,
        "        while tell and self.room > 0:\n",
        "        while tell:\n",
        f"{TEST}::test_a_peer_is_not_told_what_it_has_told_meanwhile",
    ),
    (
        "I4: messages regardless of room",
        LINK_FLOW,
        "        while self.serve and self.room > 0:\n",
        "        while self.serve:\n",
        f"{TEST}::test_requests_are_served_as_there_is_room_and_in_the_order_of_storing",
    ),
    (
        "I4: pushes regardless of room",
        LINK_FLOW,
        "while self.pushes and self.room > 0 and",
        "while self.pushes and",
        f"{TEST}::test_own_messages_for_a_peer_without_room_are_announced_when_too_many_wait",
    ),
    (
        "I5: requests while the program does not read",
        FLOW,
        "if flow.offers and self.is_open and flow.room > 0:",
        "if flow.offers and flow.room > 0:",
        f"{TEST}"
        "::test_while_the_program_does_not_read_nothing_is_requested_and_pushes_become_offers",
    ),
    (
        "I5: pushes are taken in while the program does not read",
        PACED,
        "            if not self.flow.is_open:\n",
        "            if not ids:\n",
        f"{TEST}"
        "::test_while_the_program_does_not_read_nothing_is_requested_and_pushes_become_offers",
    ),
    (
        "I6: pushes before the disk has them",
        LINK_FLOW,
        " and self.pushes[0][0] <= saved:",
        ":",
        f"{TEST}::test_own_messages_are_pushed_when_the_disk_has_them",
    ),
    (
        "I6: announcements before the disk has them",
        LINK_FLOW,
        "[id for id in first if id not in unsaved] if unsaved else list(first)",
        "list(first)",
        f"{TEST}::test_a_late_disk_holds_back_announcements_digests_and_answers_but_no_requests",
    ),
    (
        "I6: digests before the disk has them",
        LINK_FLOW,
        "[id for id in self.digest.items() if id not in unsaved]",
        "list(self.digest.items())",
        f"{TEST}::test_a_late_disk_holds_back_announcements_digests_and_answers_but_no_requests",
    ),
    (
        "I6: answers before the disk has them",
        LINK_FLOW,
        "if id in unsaved or (messages and",
        "if (messages and",
        f"{TEST}::test_a_late_disk_holds_back_announcements_digests_and_answers_but_no_requests",
    ),
    (
        "I6: what was evicted counts as saved",
        FLOW,
        "    def removed(self, ids: Collection[MessageId]) -> None:\n",
        "    def removed(self, ids: Collection[MessageId]) -> None:\n"
        "        self._saved = self.step\n",
        f"{TEST}"
        "::test_an_own_message_that_was_evicted_at_once_is_not_pushed_before_the_disk_has_it",
    ),
    (
        "I1: what another peer sent frees the window",
        EPIDEMIC,
        "                self._sender.overtaken(asked_of, (id,))\n",
        "                self._sender.freed(asked_of)\n",
        f"{TEST}::test_a_message_that_came_from_another_peer_counts_until_the_first_peer_answers",
    ),
    (
        "I1: a push answers a request",
        PACED,
        "                self.flow.overtaken(source, asked)  # a push answers no request\n",
        "                pass\n",
        f"{TEST}::test_a_push_of_a_requested_message_does_not_answer_the_request",
    ),
    (
        "I1: a message whose answer is to come is requested again",
        FLOW,
        "            chosen = [id for id in chosen if id not in again]\n",
        "",
        f"{TEST}::test_a_message_that_was_evicted_before_its_answer_came_is_not_requested_twice",
    ),
    (
        "I7: an answer that came late does not free the window",
        PACED,
        "            self.flow.answered(source, [*ids, *frame.gone])\n",
        "",
        f"{TEST}::test_a_message_that_came_from_another_peer_counts_until_the_first_peer_answers",
    ),
    (
        "I7: offers are not requested when the program reads again",
        FLOW,
        "        if is_open:\n            self._touched",
        "        if not is_open:\n            self._touched",
        f"{TEST}"
        "::test_while_the_program_does_not_read_nothing_is_requested_and_pushes_become_offers",
    ),
    (
        "a version vector may be sent any number of times",
        FLOW,
        "elif flow.told < (flow.hellos - 1) * (self._limits.offers_max // 2):",
        "elif flow.told < 0:",
        f"{TEST}"
        "::test_another_version_vector_is_answered_only_if_much_was_announced_since_the_last",
    ),
    (
        "the version vector is never sent",
        FLOW,
        "            flow.send_hello(out)\n            flow.send_wants(out)\n",
        "            flow.send_wants(out)\n",
        f"{TEST}::test_own_messages_for_a_peer_without_room_are_announced_when_too_many_wait",
    ),
    (
        "digests are never due",
        FLOW,
        "                    flow.is_digest_due = True\n",
        "",
        f"{TEST}::test_of_digests_the_last_goes_out_unless_the_peer_has_come_as_far",
    ),
    (
        "digests for a peer that has come as far",
        FLOW,
        "if digest.get(origin, seq + 1) <= seq:",
        "if digest.get(origin, seq + 1) < 0:",
        f"{TEST}::test_of_digests_the_last_goes_out_unless_the_peer_has_come_as_far",
    ),
    (
        "announcements for a peer that has the messages",
        PACED,
        "            self.flow.heard(source, frame.ids)\n",
        "            pass\n",
        f"{TEST}::test_a_peer_is_not_told_what_it_has_told_meanwhile",
    ),
    (
        "anything that a peer sends is progress",
        EPIDEMIC,
        "        if len(link.asked) < owed:\n            self._sender",
        "        if owed:\n            self._sender",
        f"{TEST}::test_a_peer_that_owes_messages_and_sends_nothing_is_cut_off",
    ),
    (
        "a push for each peer is another frame",
        FLOW,
        "                flow.pushes.extend(pushes)\n",
        "                flow.pushes.extend(pushes_of(messages, self.step, 65_536))\n",
        f"{TEST}::test_one_push_is_one_frame_for_all_peers",
    ),
    (
        "a message that fits into no frame is accepted",
        EPIDEMIC,
        "fitting = [message for message in messages if fits(message, MESSAGE_BYTES_MAX)]",
        "fitting = messages",
        "tests/core/test_sizes.py::test_a_message_that_fits_into_no_frame_is_refused",
    ),
    (
        "an own message may have any size",
        "src/beforehand/core/order.py",
        "    if not fits(message, OWN_BYTES_MAX):\n",
        "    if message is None:\n",
        "tests/core/test_sizes.py::test_an_own_message_with_too_many_causes_is_not_broadcast",
    ),
    (
        "frames are cut by the number of ids alone",
        SIZES,
        "if size <= bytes_max or len(batch) == 1:",
        "if size:",
        "tests/core/test_sizes.py::test_sets_of_the_longest_names_fit_into_frames",
    ),
    (
        "the link of a slow disk counts as silent",
        PACED_NODE,
        "if underway > before or self._is_paused:",
        "if self._is_paused:",
        f"{NODE_TEST}::test_who_sent_something_long_over_a_slow_link_was_cut_before_it_had_come",
    ),
    (
        "a frame that cannot be encoded ends the node",
        PACED_NODE,
        "                self._cut_unsendable(peer, error)\n                continue\n",
        "                self.fail(error)\n                return\n",
        f"{NODE_TEST}::test_a_frame_that_cannot_be_encoded_costs_a_link_and_not_the_node",
    ),
    (
        "a digest stands for an evicted message that came again",
        "src/beforehand/core/marks.py",
        "                single += [id for id in ids if id[1] <= unfolded]\n",
        "",
        "tests/core/test_marks.py"
        "::test_an_evicted_message_that_comes_again_is_told_to_a_peer_that_was_told_all_around_it",
    ),
)
