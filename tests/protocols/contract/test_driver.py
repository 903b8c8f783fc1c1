"""One driver for every core: in which order effects are carried out, and what a crash leaves."""

import pytest

from beforehand.protocols.contract.base import CANCEL, Counters, Message
from beforehand.protocols.contract.driver import INBOX, BroadcasterDriver, Driver
from beforehand.protocols.contract.needs import Needs
from beforehand.protocols.contract.tables import Store, Table

TICK = ("tick", None)
NOTES = Table("note", str, int)


def message(seq, payload=b""):
    return Message(("a", seq), (), payload)


class Script:
    """A core whose frames are scripts: a frame has the effects for the outbox."""

    node = "a"
    needs = Needs({})
    tables = (NOTES,)

    def __init__(self):
        self.counters = Counters()
        self.restored = None
        self.seq = 0

    def on_message(self, now_us, source, frame, out):
        for name, effects in frame.items():
            getattr(out, name).extend(effects)

    def on_timer(self, now_us, timer, out):
        out.deliveries.append(message(now_us, b"woken"))

    def on_link(self, now_us, peer, up, out):
        out.sends.append((peer, up))

    def on_broadcast(self, now_us, payload, out, lifetime_us=None):
        self.seq += 1
        out.saves.append(("note", "seq", self.seq))
        out.sends.append(("b", payload))
        out.deliveries += [message(100), message(self.seq, payload)]
        return ("a", self.seq)

    def restore(self, now_us, rows, out):
        self.restored = rows["note"]
        self.seq = rows["note"].get("seq", 0)
        out.timers.append((TICK, now_us + 10))


class Log(Store):
    """A port and a store that record all their calls in one list."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def save(self, saves):
        saves = list(saves)
        super().save(saves)
        self.rows.append(("save", [key for _, key, _ in saves]))

    def send(self, node, sends):
        self.rows += [("send", *send) for send in sends]

    def deliver(self, node, messages):
        self.rows += [("deliver", m.seq) for m in messages]

    def wake(self, node, timer, due_us, ticket):
        self.rows.append(("wake", timer, due_us, ticket))

    def broadcasted(self, node, id, deliveries):
        self.rows.append(("broadcasted", id, [m.seq for m in deliveries]))

    def received(self, node, messages):
        self.rows.append(("received", [m.seq for m in messages]))

    def lost(self, node, losses):
        self.rows.append(("lost", losses[0]))

    def kinds(self):
        return [row[0] for row in self.rows]

    def delivered(self):
        return [row[1] for row in self.rows if row[0] == "deliver"]


def make(*, inbox=False):
    log = Log()
    return BroadcasterDriver(Script, log, store=log, inbox=inbox), log


STEP = {
    "timers": [(TICK, 50)],
    "deliveries": [message(1), message(2)],
    "losses": [("drop", ("b", 1))],
    "sends": [("b", "x"), ("c", "y")],
    "receives": [message(1)],
    "saves": [("note", "k", 1), ("note", "l", 2)],
}
"""A step with everything in it; its crash points are 0 (nothing), 1 (saved), then each effect."""


# ---- the drain ----------------------------------------------------------------------------------


def test_effects_are_carried_out_as_saves_sends_deliveries_and_timers():
    driver, log = make()
    driver.on_message(0, "b", STEP)
    order = [kind for kind in log.kinds() if kind not in ("received", "lost")]
    assert order == ["save", "send", "send", "deliver", "deliver", "wake"]


def test_the_saves_of_a_step_are_one_transaction():
    driver, log = make(inbox=True)
    driver.on_message(0, "b", STEP)
    assert [row for row in log.rows if row[0] == "save"] == [
        ("save", ["k", "l", ("a", 1), ("a", 2)])
    ]


def test_order_within_a_list_is_kept():
    driver, log = make()
    driver.on_message(0, "b", STEP)
    assert [row for row in log.rows if row[0] == "send"] == [("send", "b", "x"), ("send", "c", "y")]
    assert log.delivered() == [1, 2]


def test_the_outbox_is_empty_for_the_next_input():
    driver, log = make()
    driver.on_message(0, "b", STEP)
    log.rows.clear()
    driver.on_message(1, "b", {})
    assert log.rows == []


def test_a_step_without_effects_asks_nothing_of_the_port():
    driver, log = make(inbox=True)
    driver.on_message(0, "b", {})
    assert log.rows == []


def test_a_broadcast_is_reported_after_its_save_and_before_its_send():
    driver, log = make()
    assert driver.on_broadcast(0, b"hi") == ("a", 1)
    assert log.kinds()[:3] == ["save", "broadcasted", "send"]


def test_a_broadcast_is_reported_with_the_deliveries_that_precede_it():
    driver, log = make()
    driver.on_broadcast(0, b"hi")
    assert ("broadcasted", ("a", 1), [100, 1]) in log.rows


def test_a_port_may_take_the_deliveries_that_precede_a_broadcast():
    driver, log = make()
    log.broadcasted = lambda node, _, deliveries: log.deliver(node, [deliveries.pop(0)])
    driver.on_broadcast(0, b"hi")
    assert log.kinds() == ["save", "deliver", "send", "deliver"]
    assert log.delivered() == [100, 1]


def test_link_changes_reach_the_core():
    driver, log = make()
    driver.on_link(0, "b", True)
    driver.on_link(1, "b", False)
    assert log.rows == [("send", "b", True), ("send", "b", False)]


# ---- timers -------------------------------------------------------------------------------------


def ticket_of(log):
    return next(row[3] for row in reversed(log.rows) if row[0] == "wake")


def test_a_timer_wakes_the_core_once():
    driver, log = make()
    driver.on_message(0, "b", {"timers": [(TICK, 5)]})
    ticket = ticket_of(log)
    assert driver.is_awaited(TICK, ticket)
    driver.on_timer(5, TICK, ticket)
    driver.on_timer(6, TICK, ticket)
    assert log.delivered() == [5]


def test_a_timer_that_was_replaced_does_not_fire():
    driver, log = make()
    driver.on_message(0, "b", {"timers": [(TICK, 5)]})
    old = ticket_of(log)
    driver.on_message(1, "b", {"timers": [(TICK, 9)]})
    driver.on_timer(5, TICK, old)
    assert log.delivered() == []
    driver.on_timer(9, TICK, ticket_of(log))
    assert log.delivered() == [9]


def test_a_timer_that_was_cancelled_does_not_fire():
    driver, log = make()
    driver.on_message(0, "b", {"timers": [(TICK, 5)]})
    ticket = ticket_of(log)
    driver.on_message(1, "b", {"timers": [(TICK, CANCEL)]})
    assert not driver.is_awaited(TICK, ticket)
    driver.on_timer(5, TICK, ticket)
    assert log.delivered() == []


@pytest.mark.parametrize("due_us", [-1, -(10**15)])
def test_a_timer_that_is_due_before_1970_is_not_cancelled(due_us):
    driver, log = make()
    driver.on_message(due_us - 5, "b", {"timers": [(TICK, due_us)]})
    ticket = ticket_of(log)
    assert driver.is_awaited(TICK, ticket)
    driver.on_timer(due_us, TICK, ticket)
    assert log.delivered() == [due_us]


def test_cancelling_an_unset_timer_has_no_effect():
    driver, log = make()
    driver.on_message(0, "b", {"timers": [(TICK, CANCEL)]})
    assert log.rows == []


def test_timers_of_different_subjects_do_not_replace_each_other():
    driver, log = make()
    driver.on_message(0, "b", {"timers": [(("tick", "b"), 5), (("tick", "c"), 6)]})
    for _, timer, due_us, ticket in log.rows[:2]:
        driver.on_timer(due_us, timer, ticket)
    assert log.delivered() == [5, 6]


def test_a_timer_of_an_earlier_incarnation_never_fires():
    driver, log = make()
    driver.on_message(0, "b", {"timers": [(TICK, 5)]})
    old = ticket_of(log)
    driver.crash()
    driver.on_timer(5, TICK, old)
    driver.restart(6)  # which sets the same timer
    driver.on_timer(7, TICK, old)
    assert log.delivered() == []
    driver.on_timer(16, TICK, ticket_of(log))
    assert log.delivered() == [16]


# ---- crashes ------------------------------------------------------------------------------------

EVERYTHING = ["save", "send", "send", "deliver", "deliver"]


@pytest.mark.parametrize("crash_after", range(8))
def test_crash_after_counts_the_effects_carried_out_before_the_crash(crash_after):
    driver, log = make()
    driver.crash_after = crash_after
    driver.on_message(0, "b", STEP)
    done = [kind for kind in log.kinds() if kind in ("save", "send", "deliver")]
    assert done == EVERYTHING[:crash_after]
    assert not driver.is_up
    assert driver.crash_after is None


@pytest.mark.parametrize(
    ("crash_after", "seqs"), [(0, []), (1, [1, 2]), (3, [1, 2]), (4, [2]), (5, [])]
)
def test_a_delivery_cut_off_by_a_crash_is_saved_and_does_not_arrive(crash_after, seqs):
    driver, _ = make()
    driver.crash_after = crash_after
    driver.on_message(0, "b", STEP)
    assert [m.seq for m in driver.cut_off] == seqs
    driver.restart(1)
    assert driver.core.restored == ({"k": 1, "l": 2} if crash_after else {})


def test_a_broadcast_that_was_not_saved_is_not_reported():
    driver, log = make()
    driver.crash_after = 0
    driver.on_broadcast(0, b"hi")
    assert log.rows == []


@pytest.mark.parametrize("crash_after", range(6))
def test_effects_left_undone_by_a_crash_are_not_carried_out_by_the_next_incarnation(crash_after):
    driver, log = make()
    driver.crash_after = crash_after
    driver.on_message(0, "b", STEP)
    log.rows.clear()
    driver.restart(1)
    assert log.kinds() == ["wake"]


def test_a_restart_is_a_new_core_with_the_saved_rows():
    driver, _ = make()
    first = driver.core
    driver.on_broadcast(0, b"hi")
    driver.crash()
    driver.restart(1)
    assert driver.core is not first
    assert driver.is_up
    assert driver.incarnation == 2
    assert driver.core.restored == {"seq": 1}
    assert driver.on_broadcast(2, b"ho") == ("a", 2)


def test_a_new_driver_over_a_full_store_restores_it():
    driver, log = make()
    driver.on_broadcast(0, b"hi")
    successor = BroadcasterDriver(Script, log, store=log)
    successor.restart(5)
    assert successor.on_broadcast(6, b"ho") == ("a", 2)


def test_without_a_store_a_node_cannot_restart():
    driver = Driver(Script, Log())
    driver.on_message(0, "b", STEP)  # what it saves is nowhere
    driver.crash()
    with pytest.raises(AssertionError, match="new name"):
        driver.restart(1)


# ---- at most once, at least once ----------------------------------------------------------------


def test_without_an_inbox_a_delivery_that_a_crash_cut_off_never_comes():
    driver, log = make()
    driver.crash_after = 4
    driver.on_message(0, "b", STEP)
    driver.restart(1)
    assert log.delivered() == [1]


@pytest.mark.parametrize("crash_after", range(1, 6))
def test_with_an_inbox_saved_deliveries_arrive_after_a_crash_in_the_same_order(crash_after):
    driver, log = make(inbox=True)
    driver.crash_after = crash_after
    driver.on_message(0, "b", STEP)
    log.rows.clear()
    driver.restart(1)
    assert log.delivered() == [1, 2]


def test_an_inbox_is_handed_over_again_at_every_restart_until_it_is_acknowledged():
    driver, log = make(inbox=True)
    driver.on_message(0, "b", STEP)
    for expected, done in [([1, 2], [("a", 1)]), ([2], []), ([2], [("a", 2)]), ([], [])]:
        driver.crash()
        log.rows.clear()
        driver.restart(1)
        assert log.delivered() == expected
        driver.acknowledge(done)


def test_several_messages_are_acknowledged_together():
    driver, log = make(inbox=True)
    driver.on_message(0, "b", STEP)
    driver.acknowledge([("a", 1), ("a", 2)])
    driver.crash()
    log.rows.clear()
    driver.restart(1)
    assert log.delivered() == []


def test_unacknowledged_deliveries_are_handed_over_before_new_ones():
    class Impatient(Script):
        def restore(self, now_us, rows, out):
            out.deliveries.append(message(3))

    log = Log()
    driver = BroadcasterDriver(Impatient, log, store=log, inbox=True)
    driver.on_message(0, "b", STEP)
    driver.crash()
    log.rows.clear()
    driver.restart(1)
    assert log.delivered() == [1, 2, 3]


def test_an_inbox_keeps_whole_messages():
    driver, log = make(inbox=True)
    whole = Message(("a", 1), (("b", 7), (4, -2)), b"payload", b"proof")
    driver.on_message(0, "b", {"deliveries": [whole]})
    assert log.load((INBOX,)) == {"inbox": {("a", 1): whole}}


def test_acknowledging_without_a_store_has_no_effect():
    driver = Driver(Script, Log())
    driver.acknowledge([("a", 1)])
