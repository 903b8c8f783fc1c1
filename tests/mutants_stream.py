"""Ways to break the observer of a stream, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

STATE = "src/beforehand/observe/state.py"
PACKETS = "src/beforehand/observe/packets.py"
STREAM = "src/beforehand/observe/stream.py"
REJECTS = "src/beforehand/observe/rejects.py"
TUNE = "src/beforehand/observe/tune.py"
EYE = "tests/observe/test_state.py"
WAKING = "tests/observe/test_waking.py"
TUNING = "tests/observe/test_tune.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "whole numbers are microseconds, whatever they look like",
        "src/beforehand/observe/time_unit.py",
        "elif sum(counts.values()) >= enough and not is_asked:",
        "elif sum(counts.values()) > total:",
        "tests/commands/test_observe.py::test_tune_took_milliseconds_for_microseconds_too",
    ),
    (
        "rows of one time are taken as they come, batch by batch",
        STATE,
        "is_known & (arrived_us == last)",
        "is_known & (arrived_us > last)",
        f"{EYE}::test_rows_that_arrived_last_wait_for_others_of_that_time",
    ),
    (
        "rows of one time are not sorted by their stamps",
        STATE,
        "*stamps.kn.T[::-1], high]",
        "*stamps.kn.T[::-1]]",
        f"{EYE}::test_rows_that_are_overdue_when_the_batch_comes_go_in_order_of_their_stamps",
    ),
    (
        "the clock of events does not move",
        STATE,
        "np.where(is_sound, np.maximum(shown, floor), floor)",
        "np.full(len(rows), floor)",
        f"{EYE}::test_an_idle_process_does_not_stall_the_others",
    ),
    (
        "what cannot be read is believed",
        STATE,
        "c = np.where(is_readable, c, -1)",
        "c = np.where(is_readable, c, 0)",
        f"{EYE}::test_a_row_without_a_stamp_is_taken_as_sent_on_receipt",
    ),
    (
        "late messages are not marked",
        STATE,
        "marks = (arrival, doubts.is_late,",
        "marks = (arrival, doubts.is_ahead,",
        f"{EYE}::test_a_late_message_is_delivered_at_once_and_marked",
    ),
    (
        "a state is taken up with another dial",
        STATE,
        "if blob.rule != tuple(order.rule):",
        "if len(blob.rule) != len(order.rule):",
        f"{EYE}::test_the_state_of_another_dial_is_refused",
    ),
    (
        "an idle observer wakes at once",
        STATE,
        "seen_us + idle_us",
        "seen_us",
        f"{EYE}::test_without_rows_an_observer_wakes_when_it_is_idle_and_lets_all_out",
    ),
    (
        "a row that waits forgets what was carried with it",
        STATE,
        "waiting = state.waiting.take(np.searchsorted(state.tickets, tickets))",
        "waiting = state.waiting.slice(0, len(tickets))",
        f"{EYE}::test_by_the_wall_clock_rows_arrive_when_the_batch_does_and_go_when_due",
    ),
    (
        "batches must agree on what may be null",
        PACKETS,
        'pa.concat_tables(tables, promote_options="permissive")',
        "pa.concat_tables(tables)",
        f"{EYE}::test_batches_may_disagree_on_what_may_be_null",
    ),
    (
        "the largest wait that keeps the budget is chosen",
        TUNE,
        "for point in points:",
        "for point in reversed(list(points)):",
        f"{TUNING}::"
        "test_the_smallest_wait_that_keeps_the_budget_is_chosen_then_the_smallest_timestamp",
    ),
    (
        "a dial is recommended that is over budget on the other half",
        TUNE,
        "if other.violations_percent <= budget_percent:",
        "if other.violations_percent >= 0:",
        f"{TUNING}::test_tune_chose_a_dial_that_its_own_check_found_over_budget",
    ),
    (
        "an observer that has ended is remembered",
        STREAM,
        "if is_over:",
        "if False:",
        f"{WAKING}::test_an_observer_that_has_ended_is_forgotten_and_one_that_is_flushed_is_not",
    ),
    (
        "a bounded run lets out what is idle",
        STREAM,
        "elif acts and (due_us",
        "elif (due_us",
        f"{WAKING}::test_the_last_rows_of_a_bounded_run_stayed_in_a_live_one",
    ),
    (
        "rejects of a batch that is done again are written again",
        REJECTS,
        "name = hashlib.sha256(data).hexdigest()[:NAME_DIGITS]",
        'name = f"{os.urandom(8).hex()}"',
        "tests/observe/test_rejects.py::test_rejects_of_a_batch_that_is_done_again_are_there_once",
    ),
)
