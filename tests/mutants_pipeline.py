"""Ways to break the verifier and the pipeline, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

CAUSALITY = "src/beforehand/kernels/causality.py"
VERIFY = "src/beforehand/verify/verdict.py"
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
        f"{KERNEL_TESTS}::test_it_finds_every_planted_violation",
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
        "return self.file(MANIFEST).exists()",
        "return self.folder.exists()",
        f"{DATASET_TESTS}::test_a_dataset_is_there_once_its_manifest_is",
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
        "machine code outlives the source that it calls into",
        "src/beforehand/kernels/compiling.py",
        "forget_stale(Path(__file__).parent)\n",
        "",
        "tests/kernels/test_compiling.py::test_a_change_in_a_file_that_is_called_into_is_noticed",
    ),
)
