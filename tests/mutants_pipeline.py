"""Ways to break the verifier and the pipeline, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

CAUSALITY = "src/beforehand/kernels/causality.py"
VERIFY = "src/beforehand/verify/verdict.py"
PLAN = "src/beforehand/verify/plan.py"
NODE_LOGS = "src/beforehand/verify/node_logs.py"
ABOUT = "src/beforehand/verify/about.py"
EVENT_LOG = "src/beforehand/verify/event_log.py"
FILES = "src/beforehand/files.py"
DATASETS = "src/beforehand/pipeline/datasets.py"
STAGES = "src/beforehand/pipeline/stages.py"
OVERLAY = "src/beforehand/pipeline/worlds/overlay.py"
SOURCE = "src/beforehand/scenario/source.py"
PROTOCOLS = "src/beforehand/scenario/protocols.py"
KERNEL_TESTS = "tests/kernels/test_causality.py"
VERIFY_TESTS = "tests/verify/test_verdict.py"
FILES_TESTS = "tests/test_files.py"
ONE_ANSWER_TESTS = "tests/verify/test_one_answer.py"
NODE_LOG_TESTS = "tests/verify/test_node_logs.py"
DOUBT_TESTS = "tests/verify/test_doubts.py"
DATASET_TESTS = "tests/pipeline/test_datasets.py"
SWEEP_TESTS = "tests/pipeline/test_sweep.py"
OVERLAY_TESTS = "tests/pipeline/worlds/test_overlay.py"
WORK_TESTS = "tests/pipeline/test_work.py"
SCENARIO_TESTS = "tests/pipeline/test_scenario.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a broadcast carries nothing of what its sender knows",
        CAUSALITY,
        "            load[:] = mine\n",
        "            load[:] = 0\n",
        f"{KERNEL_TESTS}::test_it_agrees_with_the_oracle_on_every_delivery",
    ),
    (
        "the last message that a node knows of may still come",
        CAUSALITY,
        "wrong[row] = mine[own] >= history.rank[what]",
        "wrong[row] = mine[own] > history.rank[what]",
        f"{KERNEL_TESTS}::test_it_agrees_with_the_oracle_on_every_delivery",
    ),
    (
        "a block goes on into the senders of the next one",
        CAUSALITY,
        "min(start + width, high), wrong)",
        "start + width, wrong)",
        f"{KERNEL_TESTS}::test_the_blocks_do_not_matter",
    ),
    (
        "what was delivered before it was broadcast counts as known",
        CAUSALITY,
        "        if what < 0 or premature[row]:\n",
        "        if what < 0:\n",
        f"{KERNEL_TESTS}::"
        "test_a_message_that_nobody_has_broadcast_yet_is_unknown_and_teaches_nothing",
    ),
    (
        "a chain leaves out how a sender came to know",
        CAUSALITY,
        "chain += [speech] if speech == learned else [learned, speech]",
        "chain += [speech]",
        f"{KERNEL_TESTS}::test_a_chain_is_a_proof",
    ),
    (
        "a hole in the log is held against it",
        VERIFY,
        'if kind != "unknown" or not doubts]',
        "]",
        f"{VERIFY_TESTS}::test_a_log_with_holes_is_unknown_unless_what_is_there_is_wrong",
    ),
    (
        "rows are taken in the order of the file",
        EVENT_LOG,
        '        table = table.sort_by("step")\n',
        "",
        f"{VERIFY_TESTS}::test_the_order_is_that_of_the_steps_and_not_of_the_rows",
    ),
    (
        "a folder that a killed run left behind is taken for a dataset",
        DATASETS,
        "return not find_damage(self.folder)",
        "return self.folder.exists()",
        f"{DATASET_TESTS}::test_a_dataset_is_there_once_its_manifest_is",
    ),
    (
        "a file that was changed at its length is taken for whole",
        FILES,
        "if mark.digest is not None and _digest(path) != mark.digest:",
        "if mark.digest is None:",
        f"{DATASET_TESTS}::"
        "test_a_dataset_whose_files_are_not_as_its_manifest_says_is_not_there[other]",
    ),
    (
        "whoever broadcasts a message is believed",
        EVENT_LOG,
        "    if strange:",
        "    if strange < 0:",
        f"{DOUBT_TESTS}::test_a_broadcast_by_another_node_than_its_origin_is_a_doubt",
    ),
    (
        "of files one behind the other the first is read",
        EVENT_LOG,
        "content.find(PARQUET_MARK * 2) > 0",
        "content.find(PARQUET_MARK * 3) > 0",
        f"{DOUBT_TESTS}::test_two_logs_that_were_put_one_behind_the_other_are_refused",
    ),
    (
        "half of a file is left behind",
        FILES,
        "            partial.unlink(missing_ok=True)\n",
        "            pass\n",
        f"{FILES_TESTS}::test_an_interrupted_write_leaves_nothing_behind",
    ),
    (
        "a device is replaced by a file",
        FILES,
        "    if path.exists() and not path.is_file():\n",
        "    if path.is_socket():\n",
        f"{FILES_TESTS}::test_a_folder_a_device_a_pipe_and_links_to_them_are_never_replaced",
    ),
    (
        "events of no known kind are passed over",
        EVENT_LOG,
        '*strange_kinds(table["kind"], KINDS), ',
        "",
        f"{DOUBT_TESTS}::test_rows_of_an_unknown_kind_do_not_hide_a_violation[Deliver]",
    ),
    (
        "nothing at all is valid",
        VERIFY,
        'return "valid" if found == {"valid"} else "unknown"',
        'return "unknown" if "unknown" in found else "valid"',
        f"{DOUBT_TESTS}::test_on_nothing_there_is_no_verdict",
    ),
    (
        "a log without rows is passed over",
        EVENT_LOG,
        '        yield empty_log(paths[0], where, ("there are no events in the log",))\n',
        "",
        f"{DOUBT_TESTS}::test_a_log_without_rows_is_not_valid",
    ),
    (
        "the end of a log is not missed",
        EVENT_LOG,
        ", about.events or 0)",
        ", 0)",
        f"{DOUBT_TESTS}::test_a_log_that_was_cut_off_at_its_end_is_not_valid",
    ),
    (
        "every run is held to causal order",
        VERIFY,
        "promise or log.about.promise or DEFAULT_PROMISE",
        "promise or DEFAULT_PROMISE",
        f"{DOUBT_TESTS}::test_a_run_that_promised_no_order_is_not_invalid_for_its_disorder",
    ),
    (
        "no order is no promise at all",
        ABOUT,
        '    "none": ("twice", "unknown"),\n',
        '    "none": (),\n',
        f"{DOUBT_TESTS}::test_what_promised_no_order_must_still_not_deliver_twice_or_from_nowhere",
    ),
    (
        "one file of a log says what is promised",
        ABOUT,
        "LEAST_PROMISE if len(promises) > 1 else next(iter(promises), None)",
        "next(iter(promises), None)",
        f"{DOUBT_TESTS}::test_of_a_log_in_parts_the_last_one_alone_said_what_is_promised",
    ),
    (
        "links to folders are not followed",
        "src/beforehand/verify/find.py",
        "followlinks=True",
        "followlinks=False",
        f"{DOUBT_TESTS}::test_a_log_behind_a_link_to_a_folder_was_not_judged",
    ),
    (
        "who comes back is reached once more",
        "src/beforehand/sim/summary.py",
        " - overlaps(up_us[again + 1], down_us[again])",
        "",
        "tests/sim/test_reach.py::test_nodes_that_come_and_go_count_once_for_a_message",
    ),
    (
        "other code gives the same name",
        DATASETS,
        "        sources=digest_of_sources(*sources),\n",
        "        sources=str(len(sources)),\n",
        f"{DATASET_TESTS}::test_a_name_changes_with_whatever_decides_the_content",
    ),
    (
        "a write that fails halfway stays",
        FILES,
        "        yield partial\n        partial.replace(target)\n",
        "        try:\n            yield partial\n"
        "        finally:\n            partial.replace(target)\n",
        f"{FILES_TESTS}::test_a_write_that_fails_leaves_what_was_there",
    ),
    (
        "the manifest of another dataset is believed",
        DATASETS,
        "        if not self.name.endswith(found.digest()):\n",
        "        if not found.stage:\n",
        f"{DATASET_TESTS}::test_a_broken_or_foreign_manifest_is_refused_and_says_what_to_do",
    ),
    (
        "the shortest tasks are started first",
        STAGES,
        "key=lambda job: -job.task.cost)",
        "key=lambda job: job.task.cost)",
        f"{SWEEP_TESTS}::test_all_rows_come_in_the_order_of_the_tasks_and_the_longest_start_first",
    ),
    (
        "the runs of a case write their events into one place",
        OVERLAY,
        '            name = f"{measure.system}-{measure.payload_bytes}"\n',
        "            name = measure.system\n",
        f"{OVERLAY_TESTS}::test_events_are_kept_on_request_and_verify_as_the_sweep_says",
    ),
    (
        "an input file is known by its name",
        SOURCE,
        "digest = digest_of_input(self.path) if self.path is not None else None",
        "digest = str(self.path)",
        f"{WORK_TESTS}::test_contacts_of_a_file_are_one_trace_for_all_seeds",
    ),
    (
        "an unknown key of a protocol is let pass",
        PROTOCOLS,
        "        document.check_keys(entry, at, KEYS)\n",
        "",
        f"{SCENARIO_TESTS}::test_everything_that_is_wrong_is_told_at_once_with_its_line",
    ),
    (
        "a task runs whatever code it finds",
        "src/beforehand/spark/tasks.py",
        "        if code_here() != expected:\n",
        "        if not expected:\n",
        "tests/spark/test_executors.py::"
        "test_a_late_executor_with_other_code_does_nothing_but_say_so",
    ),
    (
        "what others still write is removed",
        "src/beforehand/temporary.py",
        "        if owner and _is_gone(",
        "        if owner or _is_gone(",
        "tests/test_temporary.py::test_only_what_nobody_writes_any_more_is_removed",
    ),
    (
        "a delivery is measured from whatever came before it",
        "src/beforehand/sim/summary.py",
        "    found = np.flatnonzero(is_received & (kind[rows] == DELIVER))\n",
        "    found = np.flatnonzero(kind[rows] == DELIVER)\n",
        "tests/pipeline/test_metrics.py::test_the_figures_are_those_of_the_simulator",
    ),
    (
        "machine code outlives the source that it calls into",
        "src/beforehand/kernels/compiling.py",
        "forget_stale(Path(__file__).parent)\n",
        "",
        "tests/kernels/test_compiling.py::test_a_change_in_a_file_that_is_called_into_is_noticed",
    ),
    (
        "the library does not ask which logs a plan names",
        VERIFY,
        "    return Verdict(tuple(judged), lost)\n",
        "    return Verdict(tuple(judged))\n",
        f"{ONE_ANSWER_TESTS}::"
        "test_a_planned_run_without_a_log_was_valid_for_the_library_and_unknown_for_the_command",
    ),
    (
        "a dataset with a broken manifest misses no log",
        PLAN,
        "return [] if _has(root / folder, log) else [folder]",
        "return []",
        f"{ONE_ANSWER_TESTS}::test_a_dataset_with_a_cut_off_manifest_and_no_log_was_overlooked",
    ),
    (
        "a member without a log is no doubt",
        NODE_LOGS,
        "if silent := sorted({*members} - {*self.nodes, *who}):",
        "if silent := sorted({*members} & {*who} - {*self.nodes, *who}):",
        f"{NODE_LOG_TESTS}::test_a_member_in_any_roster_without_a_log_is_a_doubt",
    ),
    (
        "the roster of one file is believed, and not all of them",
        ABOUT,
        "{name for about in here for name in about.members}",
        "{*here[0].members}",
        f"{NODE_LOG_TESTS}::test_a_member_in_any_roster_without_a_log_is_a_doubt",
    ),
)
