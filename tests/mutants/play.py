"""Deliberate bugs in the page that plays a run."""

MUTANTS = [
    (
        "a message that comes again is counted as waiting once more",
        "_add_receptions",
        "is_again | (is_own & ~is_done) | (is_done & (wait < 0))",
        "is_own & is_again",
        "test_a_message_received_again_does_not_wait_again",
    ),
    (
        "the lifetime is taken for a deadline that the log does not have",
        "play.messages:_lifetimes",
        "if (np.abs(life_us[:count] - lifetime_us) > slack_us).any():",
        "if False:",
        "test_lifetimes_come_from_deadlines_and_only_from_such",
    ),
    (
        "a name in the data ends the script element",
        "_embedded_json",
        '.replace("<", "\\\\u003c")',
        "",
        "test_a_name_cannot_end_the_script_that_holds_it",
    ),
    (
        "packets are drawn as if they were receptions",
        "gather:_details",
        "if not (events.kind == SEND).any():",
        "if True:",
        "test_vcube_agrees_with_the_log_and_its_packets_with_their_rows",
    ),
]
