"""Deliberate bugs in the checkers: in the net, in its judges and in the fuzzer."""

EFFECTS = "src/beforehand/check/effects.py"
NET = "src/beforehand/check/net.py"
CLOCKS = "src/beforehand/check/clocks.py"
CASE = "src/beforehand/check/case.py"
MOVES = "src/beforehand/check/moves.py"
REST = "src/beforehand/check/rest.py"
AMPLE = "src/beforehand/check/ample.py"
HEAL = "src/beforehand/check/heal.py"
FUZZ = "src/beforehand/check/fuzz.py"
BOUNDED = "src/beforehand/check/bounded.py"
THRESHOLDS = "src/beforehand/check/thresholds.py"
SIGNER = "src/beforehand/check/signer.py"
CONTACTS = "src/beforehand/check/families/contacts.py"
SHRINK = "src/beforehand/check/shrink.py"
STORY = "src/beforehand/check/story.py"
SWARM = "src/beforehand/check/swarm.py"
COMMAND = "src/beforehand/commands/fuzz.py"
ORDER = "src/beforehand/core/vector.py"
MARKS = "src/beforehand/core/marks.py"
NODE_LOGS = "src/beforehand/verify/node_logs.py"

NET_TEST = "tests/check/test_net.py::test_"
BOUNDED_TEST = "tests/check/test_bounded.py::test_"
LACKS_TEST = f"{BOUNDED_TEST}a_node_lacks_what_a_peer_holds_unless_it_had_it_during_the_contact"
THRESHOLDS_TEST = "tests/check/test_thresholds.py::test_"
FUZZ_TEST = "tests/check/test_fuzz.py::test_"
REDUCTIONS_TEST = "tests/check/test_reductions.py::test_"
LIVENESS_TEST = "tests/check/test_liveness.py::test_"
ICE_TEST = "tests/check/test_ice.py::test_"
COMMAND_TEST = "tests/commands/test_fuzz.py::test_"

MUTANTS = [
    (
        "a set of nodes is ample although others send frames to it",
        AMPLE,
        "return self._search(nodes, start) if known is None else known",
        "return True",
        f"{REDUCTIONS_TEST}reduced_and_full_explorations_come_to_rest_in_the_same_states[line]",
    ),
    (
        "a set of nodes is ample although no frame is on its way to it",
        AMPLE,
        "if nodes & awaited and self",
        "if self",
        f"{REDUCTIONS_TEST}reduced_and_full_explorations_come_to_rest_in_the_same_states[digests]",
    ),
    (
        "a set of nodes is ample although trouble is left",
        AMPLE,
        "if any(net.left.values()) or net.suspected",
        "if net.suspected",
        f"{REDUCTIONS_TEST}reduced_and_full_explorations_come_to_rest_in_the_same_states[a loss]",
    ),
    (
        "moves that can wait wait for ever",
        "src/beforehand/check/explore.py",
        "if turn == ALL and is_open:",
        "if turn == ALL:",
        f"{REDUCTIONS_TEST}a_move_that_can_wait_does_not_wait_for_ever",
    ),
    (
        "no step is repeated under other names",
        "src/beforehand/check/symmetry.py",
        "if _comparable(again) != _comparable(",
        "if _comparable(again) == (",
        f"{REDUCTIONS_TEST}a_core_that_breaks_ties_by_node_id_makes_symmetry_no_ground_to_leave_out"
        "_states",
    ),
    (
        "links that flap are taken for symmetric",
        "src/beforehand/check/symmetry.py",
        "(case.is_mortal or case.flaps or",
        "(case.is_mortal or",
        f"{REDUCTIONS_TEST}cases_that_tell_their_nodes_apart_have_no_renamings",
    ),
    (
        "every cycle is fair",
        "src/beforehand/check/liveness.py",
        "always = set.intersection(*possible)",
        "always: set[Hashable] = set()",
        f"{LIVENESS_TEST}a_cycle_that_leaves_out_a_move_that_is_always_possible_is_not_fair",
    ),
    (
        "nothing is deliverable",
        "src/beforehand/check/liveness.py",
        "if (node, id) not in net.given_up",
        "if (node, id) in net.given_up",
        f"{LIVENESS_TEST}a_request_that_is_denied_for_ever_is_starvation",
    ),
    (
        "a thawed program reads",
        REST,
        "net.closed = set(rest.closed)",
        "net.closed = set()",
        f"{ICE_TEST}a_frozen_group_keeps_what_waits_for_disk_and_program",
    ),
    (
        "a thawed disk is never late",
        "src/beforehand/check/ice.py",
        "driver._store.pending = list(pending)",
        "driver._store.pending = []",
        f"{ICE_TEST}a_frozen_group_keeps_what_waits_for_disk_and_program",
    ),
    (
        "the room of a wire is told to a copy of the core",
        "src/beforehand/check/recall.py",
        '    "on_room": 3,\n',
        "",
        f"{ICE_TEST}every_state_of_an_epidemic_node_is_found_that_whole_nets_show[flow control]",
    ),
    (
        "the explorer sets no clock",
        MOVES,
        'if net.left["settings"]:',
        "if False:",
        f"{ICE_TEST}every_state_of_an_epidemic_node_is_found_that_whole_nets_show[a clock]",
    ),
    (
        "instants of a core stay where they were when a state is moved to time 0",
        "src/beforehand/check/history.py",
        "        link.progress_us -= us\n",
        "",
        f"{ICE_TEST}a_state_begins_at_time_0_and_its_instants_are_as_far_apart_as_before",
    ),
    (
        "stale ids are swept and nothing is put back",
        MARKS,
        "            for id in self._held:\n                self._insert(id)\n",
        "",
        "tests/core/test_marks.py::test_what_is_held_is_told_after_the_stale_ids_were_swept",
    ),
    (
        "copies of a log may differ in the origin",
        NODE_LOGS,
        'for name in ("kind", "origin", "seq", "value"):',
        'for name in ("kind", "seq", "value"):',
        "tests/verify/test_node_logs.py"
        "::test_two_logs_that_contradict_each_other_are_refused"
        "[extra2-two logs of `bob` differ in step 1]",
    ),
    (
        "half of the nodes are judged for what they never delivered",
        CASE,
        "    for node in honest(net):\n        missing",
        "    for node in range(net.case.nodes // 2):\n        missing",
        f"{NET_TEST}every_node_is_judged_for_what_it_never_delivered",
    ),
    (
        "deliveries that a crash cut off are excused with an inbox too",
        CASE,
        "cut_off = () if net.case.inbox else net.drivers[node].cut_off",
        "cut_off = net.drivers[node].cut_off",
        f"{NET_TEST}a_delivery_that_a_crash_cut_off_is_excused_unless_there_is_an_inbox[True]",
    ),
    (
        "what nobody knows of is not lost",
        CASE,
        'if state not in ("waiting", "expired") and',
        'if state not in ("waiting", "expired", "unknown") and',
        f"{NET_TEST}what_a_node_received_and_does_not_know_is_lost_in_silence",
    ),
    (
        "frames under way survive the crash of their sender",
        NET,
        "        for flight in leaving[left:]:\n            del self.flights[flight]\n",
        "",
        f"{NET_TEST}a_crash_drops_the_frames_under_way_but_those_that_have_left[0]",
    ),
    (
        "frames reach a node that has crashed and come back",
        NET,
        "for key, frame in self.flights.items() if key[1] != node}",
        "for key, frame in self.flights.items()}",
        f"{NET_TEST}what_is_under_way_to_a_node_that_crashes_is_lost",
    ),
    (
        "frames survive the end of a contact",
        NET,
        "        self.flights = {f: item for f, item in self.flights.items()"
        " if {*f[:2]} != {a, b}}\n",
        "",
        f"{NET_TEST}the_end_of_a_contact_loses_the_frames_of_both_ends_and_no_others",
    ),
    (
        "timers survive a crash",
        NET,
        "for key, due in self.timers.items() if key[0] != node}",
        "for key, due in self.timers.items()}",
        f"{NET_TEST}a_node_that_crashed_hears_of_nothing_that_was_to_come",
    ),
    (
        "news of links survive a crash",
        NET,
        "[item for item in self.news if item[0] != node]",
        "[*self.news]",
        f"{NET_TEST}a_node_that_crashed_hears_of_nothing_that_was_to_come",
    ),
    (
        "peers do not hear of a crash",
        NET,
        "                self._inform(peer, node, False)\n\n    def _part",
        "                pass\n\n    def _part",
        f"{NET_TEST}the_peers_of_a_node_that_crashed_hear_of_it",
    ),
    (
        "trouble never ends",
        NET,
        "        self.left[trouble] -= 1\n",
        "",
        f"{NET_TEST}all_clocks_are_set_at_once_as_often_as_the_case_says",
    ),
    (
        "what was dropped is excused for ever",
        NET,
        "            if up and self.dropped:\n",
        "            if False:\n",
        f"{BOUNDED_TEST}what_was_dropped_is_excused_until_the_link_comes_up_again",
    ),
    (
        "any link excuses what was dropped during another",
        NET,
        "if item[:2] != (node, peer)}",
        "if item[0] != node}",
        f"{BOUNDED_TEST}what_was_dropped_is_excused_until_the_link_comes_up_again",
    ),
    (
        "what expired counts as dropped",
        EFFECTS,
        '            if kind == "drop":\n',
        "            if kind:\n",
        f"{BOUNDED_TEST}what_was_dropped_is_excused_until_the_link_comes_up_again",
    ),
    (
        "a net is made with thresholds that are not in force",
        NET,
        "    assert case.thresholds == thresholds_in_force(), ",
        "    assert True, ",
        f"{THRESHOLDS_TEST}a_case_whose_thresholds_are_not_in_force_is_refused",
    ),
    (
        "words are not compared",
        EFFECTS,
        "        self.payloads[message] = words\n",
        "",
        f"{FUZZ_TEST}the_swarm_finds_what_is_broken[causal-Garbling-other words]",
    ),
    (
        "what was received is not watched",
        NET,
        "            self.held |= self.fresh\n",
        "",
        f"{FUZZ_TEST}the_swarm_finds_what_is_broken[causal-Tightlipped-lost it in silence]",
    ),
    (
        "a lost frame arrives",
        NET,
        '        del self.flights[flight]\n        self.sights.add("lost")\n',
        '        self.sights.add("lost")\n',
        f"{NET_TEST}a_frame_is_lost_or_doubled_as_often_as_the_case_says",
    ),
    (
        "a doubled frame arrives once",
        NET,
        "        self._launch(flight[0], flight[1], *self.flights[flight])\n",
        "",
        f"{NET_TEST}a_frame_is_lost_or_doubled_as_often_as_the_case_says",
    ),
    (
        "what is delivered in the step of a broadcast is not before it",
        EFFECTS,
        '            self.oracle.see(node, "learn", delivered.id)  # it is',
        "            pass  # it is",
        f"{NET_TEST}what_is_delivered_before_an_own_message_in_one_step_is_in_its_past",
    ),
    (
        "messages may wait for nothing",
        CASE,
        'if fate.state == "waiting" and not fate.missing and fate.until_us is None:',
        "if False:",
        f"{NET_TEST}a_node_that_cannot_say_what_a_message_waits_for_holds_it_for_no_reason",
    ),
    (
        "waiting for a clock is always excused",
        CONTACTS,
        "    if not net.case.shifts:\n        return set()\n",
        "",
        f"{NET_TEST}a_wait_for_the_own_clock_is_excused_only_where_all_clocks_may_fall[0]",
    ),
    (
        "nobody hears of a suspicion",
        NET,
        '        self._inform(node, peer, False)\n        self.sights.add("suspected")\n',
        '        self.sights.add("suspected")\n',
        f"{NET_TEST}a_node_hears_of_its_suspicion_and_of_its_end",
    ),
    (
        "sound nodes may refuse messages",
        CONTACTS,
        "        if refused and not self.hostile(net.case):\n",
        "        if False:\n",
        f"{NET_TEST}messages_that_sound_nodes_refuse_are_a_problem",
    ),
    (
        "an explored state forgets what was dropped",
        REST,
        "net.dropped, net.payloads = set(rest.dropped), dict",
        "net.dropped, net.payloads = set(), dict",
        f"{NET_TEST}an_explored_state_has_its_own_clocks_and_drops",
    ),
    (
        "an explored state forgets that all clocks were set",
        REST,
        "(net.shift_us, highest_us, *net.offsets_us)",
        "(0, 0, *net.offsets_us)",
        f"{NET_TEST}an_explored_state_has_its_own_clocks_and_drops",
    ),
    (
        "clocks are not shifted",
        CLOCKS,
        "        self.shift_us = shift_us\n",
        "",
        f"{NET_TEST}all_clocks_are_set_at_once_as_often_as_the_case_says",
    ),
    (
        "a shift forgets what clocks have shown",
        CLOCKS,
        '            self.sights.add("all set back")\n'
        "            self.highest_us = self.latest_reading_us()\n",
        '            self.sights.add("all set back")\n',
        f"{NET_TEST}the_latest_reading_of_a_clock_is_remembered_when_clocks_fall",
    ),
    (
        "one clock that is set back forgets what it has shown",
        CLOCKS,
        '            self.sights.add("set back")\n'
        "            self.highest_us = self.latest_reading_us()\n",
        '            self.sights.add("set back")\n',
        f"{NET_TEST}the_latest_reading_of_a_clock_is_remembered_when_clocks_fall",
    ),
    (
        "time does not stop for what is on its way",
        CLOCKS,
        "us = min(us, self._latest_us() - self.now_us)",
        "us = us",
        f"{NET_TEST}time_stops_until_what_is_on_its_way_has_arrived",
    ),
    (
        "healing forgets the nodes that are down",
        HEAL,
        '        net.do(("restart", node))\n',
        "",
        f"{NET_TEST}a_healed_net_has_heard_all_links_is_whole_and_is_not_cut_off_any_more",
    ),
    (
        "healing lets nodes crash",
        HEAL,
        "        driver.fuse = None\n",
        "",
        f"{NET_TEST}a_healed_net_has_heard_all_links_is_whole_and_is_not_cut_off_any_more",
    ),
    (
        "healing leaves out the last node",
        HEAL,
        "for node in range(net.case.nodes - 1))",
        "for node in range(net.case.nodes - 2))",
        f"{NET_TEST}a_healed_net_has_heard_all_links_is_whole_and_is_not_cut_off_any_more",
    ),
    (
        "a net that goes on for ever passes",
        HEAL,
        '    net.problem = "the healed net does not come to rest"\n',
        "",
        f"{NET_TEST}a_net_that_goes_on_for_ever_is_a_problem",
    ),
    (
        "a net at rest is not judged",
        HEAL,
        "            net.problem = next(net.family.problems(net), None)\n",
        "",
        f"{FUZZ_TEST}the_swarm_finds_what_is_broken[causal-Tightlipped-lost it in silence]",
    ),
    (
        "only one end of a link is judged",
        BOUNDED,
        "for node, peer in (pair, pair[::-1]):",
        "for node, peer in (pair,):",
        f"{LACKS_TEST}[not held]",
    ),
    (
        "what any node dropped is excused",
        BOUNDED,
        "if (at, by) == (node, peer)}",
        "if node in (at, by)}",
        f"{LACKS_TEST}[dropped by the peer]",
    ),
    (
        "what has expired must be offered",
        BOUNDED,
        "held[peer].intersection(alive) - has",
        "held[peer] - has",
        f"{LACKS_TEST}[expired]",
    ),
    (
        "full caches are not judged",
        CONTACTS,
        "            yield from never_offered(net, alive)\n",
        "            pass\n",
        f"{BOUNDED_TEST}the_swarm_finds_full_caches_that_withhold_or_refuse_messages[Sparing]",
    ),
    (
        "a bound on bytes excuses everything",
        CONTACTS,
        "if setup.options.capacity is None and setup.options.capacity_bytes is None:",
        "if setup.options.capacity is None:",
        f"{BOUNDED_TEST}a_net_is_judged_by_what_is_offered_where_bytes_are_bounded_too",
    ),
    (
        "a message must arrive after its deadline",
        CONTACTS,
        "if id[1] > latest_us}",
        "if id[1] > net.now_us}",
        f"{NET_TEST}a_message_whose_deadline_a_clock_has_shown_need_not_arrive",
    ),
    (
        "low thresholds stay",
        THRESHOLDS,
        "            names[name] = value\n",
        "            pass\n",
        f"{THRESHOLDS_TEST}thresholds_are_restored_as_they_were_after_an_error_too",
    ),
    (
        "low thresholds reach only the modules that define them",
        THRESHOLDS,
        "for (_, name), low in LOW.items() for names in cores if name in names",
        "for (home, name), low in LOW.items() for names in cores if names is vars(home)",
        f"{THRESHOLDS_TEST}modules_that_import_a_threshold_by_name_get_the_low_one_too",
    ),
    (
        "thresholds are never low",
        FUZZ,
        '        case = replace(case, thresholds="low")\n',
        "        pass\n",
        f"{THRESHOLDS_TEST}every_family_is_drawn_with_both_thresholds[causal]",
    ),
    (
        "a shrunk run has the shipped thresholds",
        SHRINK,
        "    with in_force(case.thresholds):\n",
        '    with in_force("as shipped"):\n',
        f"{COMMAND_TEST}a_failure_with_each_kind_of_trouble_is_replayed_as_it_was[low thresholds]",
    ),
    (
        "a story has the shipped thresholds",
        STORY,
        "    with in_force(case.thresholds):\n",
        '    with in_force("as shipped"):\n',
        f"{COMMAND_TEST}a_failure_with_each_kind_of_trouble_is_replayed_as_it_was[low thresholds]",
    ),
    (
        "signers never fail",
        SIGNER,
        "if self._fails and",
        "if False and",
        f"{NET_TEST}a_broadcast_whose_signer_fails_is_not_said_and_the_next_one_is_whole",
    ),
    (
        "anybody's signature will do",
        SIGNER,
        "digest_size=PROOF_BYTES, key=key",
        "digest_size=PROOF_BYTES",
        f"{NET_TEST}a_signature_is_of_one_node_and_one_text",
    ),
    (
        "of several that cannot be signed some count as said",
        ORDER,
        "        messages = self._proven(messages)\n",
        "        messages = [self._proven([message])[0] for message in messages]\n",
        "tests/core/test_chorus.py"
        "::test_a_signer_that_failed_at_the_second_of_several_left_the_first_delivered_and_unsent"
        "[vector]",
    ),
    (
        "the default of the fuzzer is a list of names",
        COMMAND,
        "tuple(FAMILIES) if args.protocol is None",
        '("causal", "delta", "vector", "vcube", "observer") if args.protocol is None',
        f"{COMMAND_TEST}a_family_that_is_added_to_the_registry_is_in_the_default",
    ),
    (
        "a failure is replayed with another seed",
        FUZZ,
        "--protocol {self.protocol} --replay {self.seed}",
        "--protocol {self.protocol} --replay {self.seed + 1}",
        f"{COMMAND_TEST}a_failure_with_each_kind_of_trouble_is_replayed_as_it_was[a full cache]",
    ),
    (
        "a swarm loses its failures",
        SWARM,
        "                swarm.failures += [outcome for outcome in outcomes if outcome.problem]\n",
        "",
        f"{NET_TEST}a_swarm_collects_its_failures_in_the_order_of_their_seeds",
    ),
    (
        "absent nodes are there",
        NET,
        "    for node in case.absent:\n",
        "    for node in ():\n",
        f"{NET_TEST}absent_nodes_are_down_until_they_restart",
    ),
    (
        "the next instant is that of clocks that were never set",
        MOVES,
        "[net.shift_us + offset_us for",
        "[offset_us for",
        f"{NET_TEST}the_next_instant_of_an_explored_net_is_read_off_clocks_that_were_all_set",
    ),
]
