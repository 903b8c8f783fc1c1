"""The calendar queue returns events in order, whatever is added meanwhile."""

from hypothesis import given
from hypothesis import strategies as st

from beforehand.kernels.queue.calendar import DAY_BITS
from beforehand.sim.calendar_queue import CalendarQueue

DELAYS_US = st.one_of(
    st.integers(0, 3), st.integers(0, 3 << DAY_BITS), st.integers(0, 10_000 << DAY_BITS)
)


@given(
    starts_us=st.lists(DELAYS_US, max_size=20),
    delays_us=st.lists(st.lists(DELAYS_US, max_size=3), max_size=60),
)
def test_the_queue_is_ordered_by_time_and_ticket(starts_us, delays_us):
    agenda = CalendarQueue()
    added = [(t_us, ticket) for ticket, t_us in enumerate(starts_us)]
    for event in added:
        agenda.add(*event)
    taken = []
    following = iter(delays_us)
    for event in agenda:
        taken.append(event)
        for delay_us in next(following, ()):
            added.append((event[0] + delay_us, len(added)))
            agenda.add(*added[-1])
    assert taken == sorted(added)
