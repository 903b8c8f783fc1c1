"""Deliberate bugs in how cores are driven and saved, each with the test that must notice it."""

MUTANTS = [
    (
        "send before saving",
        "Driver._drain",
        "    if saves := out.saves:\n",
        "    port.send(node, out.sends)\n    out.sends.clear()\n    if saves := out.saves:\n",
        "test_effects_are_carried_out_as_saves_sends_deliveries_and_timers",
    ),
    (
        "a broadcast is reported after it is sent",
        "Driver._drain",
        "        self._report_broadcasts(broadcasts)\n",
        "        port.send(node, out.sends)\n"
        "        out.sends.clear()\n"
        "        self._report_broadcasts(broadcasts)\n",
        "test_a_broadcast_is_reported_after_its_save_and_before_its_send",
    ),
    (
        "let timers outlive a crash",
        "Driver.crash",
        "    self._timers.clear()\n",
        "",
        "test_a_timer_of_an_earlier_incarnation_never_fires",
    ),
    (
        "the timers of each incarnation are numbered from one",
        "Driver.restart",
        "    self.incarnation += 1\n",
        "    self.incarnation += 1\n    self._ticket = 0\n",
        "test_a_timer_of_an_earlier_incarnation_never_fires",
    ),
    (
        "let a replaced timer fire",
        "Driver.on_timer",
        "    if self._timers.get(timer) == ticket:  #",
        "    if timer in self._timers:  #",
        "test_a_timer_that_was_replaced_does_not_fire",
    ),
    (
        "let a cancelled timer fire",
        "Driver._set_timers",
        "        self._ticket += 1\n",
        "        if due_us is CANCEL:\n            continue\n        self._ticket += 1\n",
        "test_a_timer_that_was_cancelled_does_not_fire",
    ),
    (
        "take a due time before 1970 for a cancellation",
        "Driver._set_timers",
        "        if due_us is CANCEL:",
        "        if due_us is CANCEL or due_us < 0:",
        "test_a_timer_that_is_due_before_1970_is_not_cancelled",
    ),
    (
        "the effects of a crashed step are carried out",
        "Driver.crash",
        "    self._timers.clear()\n    self._out.clear()\n",
        "    self._timers.clear()\n",
        "test_effects_left_undone_by_a_crash_are_not_carried_out_by_the_next_incarnation",
    ),
    (
        "the saves that a crash cut off are written",
        "Driver._cut",
        "    if left < 0:\n        return False",
        "    left = max(left, 0)",
        "test_crash_after_counts_the_effects_carried_out_before_the_crash",
    ),
    (
        "deliveries that a crash cut off are not reported",
        "Driver._cut",
        "    self.cut_off += out.deliveries[left:]\n",
        "",
        "test_a_delivery_cut_off_by_a_crash_is_saved_and_does_not_arrive",
    ),
    (
        "do not save the inbox",
        "Driver._drain",
        "    if self._inbox:\n        out.saves",
        "    if False:\n        out.saves",
        "test_with_an_inbox_saved_deliveries_arrive_after_a_crash_in_the_same_order",
    ),
    (
        "save the inbox after the deliveries",
        "Driver._drain",
        "out.saves += [(INBOX.name, message.id, message) for message in out.deliveries]",
        "late = [(INBOX.name, message.id, message) for message in out.deliveries]\n"
        "        if self.crash_after is None and self._store is not None:\n"
        "            self._store.save(late)",
        "test_a_crash_at_any_point_delivers_nothing_twice_and_loses_only_what_it_reports[at"
        " least once-causal, durable]",
    ),
    (
        "restart without the inbox",
        "Driver.restart",
        "    if self._inbox and rows[INBOX.name]:",
        "    if False:",
        "test_with_an_inbox_saved_deliveries_arrive_after_a_crash_in_the_same_order",
    ),
    (
        "take a restart for an acknowledgement",
        "Driver.restart",
        "        self._port.deliver(self.node, list(rows[INBOX.name].values()))\n",
        "        self._port.deliver(self.node, list(rows[INBOX.name].values()))\n"
        "        self.acknowledge(list(rows[INBOX.name]))\n",
        "test_an_inbox_is_handed_over_again_at_every_restart_until_it_is_acknowledged",
    ),
    (
        "forget acknowledgements",
        "Driver.acknowledge",
        "[(INBOX.name, message, None) for message in messages]",
        "[]",
        "test_an_inbox_is_handed_over_again_at_every_restart_until_it_is_acknowledged",
    ),
    (
        "a store that forgets to delete",
        "Store.save",
        "rows.pop(_encode(key), None)",
        "pass",
        "test_none_deletes_a_row",
    ),
    (
        "a store deletes empty values",
        "Store.save",
        "        if value is None:",
        "        if not value:",
        "test_an_empty_value_does_not_delete_a_row",
    ),
    (
        "a store without types",
        "Store._load",
        "msgspec.msgpack.decode(key, type=table.key)",
        "msgspec.msgpack.decode(key)",
        "test_keys_and_values_come_back_with_their_types",
    ),
    (
        "a network that reorders frames is accepted",
        "_unmet",
        "if needed.fifo and not given.fifo:",
        "if False:",
        "test_fifo_links_are_refused_only_where_they_are_needed_and_not_given",
    ),
    (
        "a network that loses frames is accepted",
        "_unmet",
        "if needed.reliable and not given.reliable:",
        "if False:",
        "test_reliable_links_are_refused_only_where_they_are_needed_and_not_given",
    ),
    (
        "clocks without a bound are accepted",
        "refuse_unmet",
        "(given_us is None or given_us > asked_us)",
        "(given_us is not None and given_us > asked_us)",
        "test_clocks_that_differ_by_more_than_agreed_are_refused",
    ),
    (
        "clocks that differ by too much are accepted",
        "refuse_unmet",
        "(given_us is None or given_us > asked_us)",
        "given_us is None",
        "test_clocks_that_differ_by_more_than_agreed_are_refused",
    ),
    (
        "a network without the links is accepted",
        "_unmet",
        '        return [f"{kind} links, but there are none"]',
        "        return []",
        "test_a_missing_kind_of_link_is_refused",
    ),
    (
        "repeat nothing until the clock has caught up",
        "Direct.on_timer",
        "if not 0 <= now_us - link.progress_us < self._options.retry_us:",
        "if now_us - link.progress_us >= self._options.retry_us:",
        "test_unanswered_frames_are_repeated_by_a_timer_however_far_the_clock_fell",
    ),
    (
        "frames of peers without a link are accepted",
        "Epidemic.on_message",
        "    if link is None:\n        return",
        "    if link is None:\n"
        "        link = Peer(set(), set(), {})\n"
        "    if False:\n"
        "        return",
        "test_a_frame_from_a_peer_that_is_not_in_contact_is_ignored[causal]",
    ),
    (
        "use a sequence number again after a crash",
        "Unordered.on_broadcasts",
        'out.saves.append(("own", "seq", seq))',
        "pass",
        "test_a_crash_at_any_point_delivers_nothing_twice_and_loses_only_what_it_reports[at"
        " most once-none, durable]",
    ),
    (
        "deliver again after a crash",
        "Vector._deliver",
        'out.saves += [("delivered", *message.id) for message in messages]',
        "pass",
        "test_a_crash_at_any_point_delivers_nothing_twice_and_loses_only_what_it_reports[at"
        " most once-vector, durable]",
    ),
    (
        "frames of members reported as down are ignored",
        "VCube.on_message",
        "        self._refuse(source, problem)\n",
        "        self._refuse(source, problem)\n    if not self._live[source]:\n        return\n",
        "test_a_frame_from_a_member_that_is_reported_down_is_taken[vcube]",
    ),
    (
        "acknowledge one of several",
        "Driver.acknowledge",
        "self._store.save([(INBOX.name, message, None) for message in messages])",
        "self._store.save([(INBOX.name, message, None) for message in messages[:1]])",
        "test_several_messages_are_acknowledged_together",
    ),
]
