"""Deliberate bugs in the compiled twin of the contact world, each with its test."""

MUTANTS = [
    (
        "the ring forgets what a node that is away awaits",
        "kernels.epidemic.sets:turn",
        "if which != AWAITED:",
        "if which >= 0:",
        "test_messages_that_expired_while_a_node_was_away_expire_when_it_returns",
    ),
    (
        "deadlines out of order are played",
        "_is_out_of_order",
        "return bool(s.seq[m] < s.seq[m - 1])",
        "return False",
        "test_deadlines_that_do_not_grow_with_the_broadcasts_are_refused_and_not_approximated",
    ),
    (
        "clocks that differ are played as if they did not",
        "refusal",
        "bool(spec.clocks.skew_us)",
        "False",
        "test_an_option_that_the_twin_lacks_is_refused_by_name[clocks that differ]",
    ),
    (
        "lost frames are played as if they arrived",
        "refusal",
        "links.is_noisy",
        "False",
        "test_an_option_that_the_twin_lacks_is_refused_by_name[jitter]",
    ),
    (
        "a step writes more rows than its bound says",
        "short_of",
        "2 * came + pending + 2",
        "came",
        "test_in_a_few_random_worlds_nothing_differs",
    ),
    (
        "expired messages are requested elsewhere",
        "kernels.epidemic.layer:ask_elsewhere",
        "rest[w & f.mask] &= live_mask(s, w)",
        "pass",
        "test_the_twin_requests_no_expired_message_from_another_peer",
    ),
    (
        "the compiled draws are not those of the cores",
        "kernels.epidemic.layer:draw",
        "s.node[node, DRAWS] = at + 1",
        "pass",
        "test_in_a_few_random_worlds_nothing_differs",
    ),
    (
        "the cores play a run without reporting the reason",
        "play_run",
        'return Played(run_one(trace, spec, on_done=on_done), "cores", why)',
        'return Played(run_one(trace, spec, on_done=on_done), "cores", "")',
        "test_an_option_that_the_twin_lacks_is_refused_by_name[push]",
    ),
]
