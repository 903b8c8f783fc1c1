"""Ways to break mobility and contact detection, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

KERNEL = "src/beforehand/kernels/contacts.py"
MOBILITY = "src/beforehand/mobility"
KERNEL_TEST = "tests/kernels/test_contacts.py"
TESTS = "tests/mobility"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "trips of a service that is in no calendar are passed over in silence",
        f"{MOBILITY}/gtfs_tables.py",
        'if row["service_id"] not in known:',
        'if row["service_id"] in known and not known:',
        f"{TESTS}/test_gtfs_odd.py::test_an_odd_feed_gives_the_vehicles_that_a_person_would_read",
    ),
    (
        "a bus starts twice at one time",
        f"{MOBILITY}/gtfs.py",
        "sorted({*map(float, span)}.difference(before))",
        "[*map(float, span)]",
        f"{TESTS}/test_gtfs_odd.py::test_a_repeated_row_of_frequencies_made_every_bus_twice",
    ),
    (
        "boxes are not widened by the range, so that neighbours in other cells are missed",
        KERNEL,
        "reach = 0.5 * range_m * (1 + 1e-9) + 1e-6",
        "reach = 0.25 * range_m",
        f"{KERNEL_TEST}::test_the_grid_loses_nobody_against_all_pairs",
    ),
    (
        "a pair is only looked at in the first cell of the one, not in the first they share",
        KERNEL,
        "x, y = max(one[X_LOW], other[X_LOW]), max(one[Y_LOW], other[Y_LOW])",
        "x, y = one[X_LOW], one[Y_LOW]",
        f"{KERNEL_TEST}::test_the_grid_loses_nobody_against_all_pairs",
    ),
    (
        "the root before the closest approach is half of what it should be",
        KERNEL,
        "low, high = gap / far / speed, far / speed",
        "low, high = -(along + half) / speed / 2, far / speed",
        f"{KERNEL_TEST}::test_contacts_are_those_of_exact_arithmetic_to_the_microsecond",
    ),
    (
        "nodes exactly one range apart are not in contact",
        KERNEL,
        "box[order], range_m + TOLERANCE_M)",
        "box[order], range_m - TOLERANCE_M)",
        f"{KERNEL_TEST}::test_two_at_rest_exactly_one_range_apart_are_in_contact",
    ),
    (
        "relative rest is not recognised, so that rounding decides",
        KERNEL,
        "if speed * shared_us < TOLERANCE_M:",
        "if speed < 0:",
        f"{KERNEL_TEST}::test_two_at_rest_exactly_one_range_apart_are_in_contact",
    ),
    (
        "pieces that touch at a slab border stay two contacts",
        KERNEL,
        "if same and up_us <= merged[size - 1, 3]:",
        "if same and up_us < merged[size - 1, 3]:",
        f"{KERNEL_TEST}::test_a_contact_across_slabs_is_found_in_parts_and_joined",
    ),
    (
        "the part of a contact before the slab is reported again",
        KERNEL,
        "up_us = max(up_us, one[T0], other[T0])",
        "up_us = max(up_us, 0)",
        f"{KERNEL_TEST}::test_a_contact_across_slabs_is_found_in_parts_and_joined",
    ),
    (
        "a contact that ends before it starts is turned round in silence",
        f"{MOBILITY}/contacts_list.py",
        "    if down_us < up_us:\n",
        "    up_us, down_us = min(up_us, down_us), max(up_us, down_us)\n    if down_us < up_us:\n",
        f"{TESTS}/test_contacts_list.py::"
        "test_a_contact_that_ends_before_it_starts_names_file_and_line",
    ),
    (
        "times pass through a float",
        f"{MOBILITY}/lines.py",
        "return round(value * unit_us)",
        "return round(float(value) * unit_us)",
        f"{TESTS}/test_contacts_list.py::test_times_are_exact_to_the_microsecond",
    ),
    (
        "the first down ends a connection that was up twice",
        f"{MOBILITY}/ups_and_downs.py",
        "            up_us, _ = ups.pop()\n",
        "            up_us, _ = ups[0]\n            ups.clear()\n",
        f"{TESTS}/test_one.py::"
        "test_connections_of_a_pair_that_overlap_are_one_until_the_last_is_down",
    ),
    (
        "a slot starts at its time instead of ending there",
        f"{MOBILITY}/sociopatterns.py",
        "shift_us = 0 if from_t else slot_us",
        "shift_us = 0",
        f"{TESTS}/test_points.py::test_slots_without_a_gap_are_one_contact",
    ),
    (
        "a node sent elsewhere on its way jumps to its old goal first",
        f"{MOBILITY}/ns2.py",
        "if time_us >= arrival_us:",
        "if time_us >= self.since_us:",
        f"{TESTS}/test_ns2.py::test_a_node_walks_rests_and_is_sent_elsewhere_on_its_way",
    ),
    (
        "stops are placed one by one at the nearest piece of road",
        f"{MOBILITY}/gtfs_paths.py",
        "piece[stop - 1] = at if stays[stop, at] else np.argmin(best[stop - 1, :at])",
        "piece[stop - 1] = np.argmin(cost[stop - 1])",
        f"{TESTS}/test_gtfs.py::test_a_stop_on_a_road_that_comes_by_twice_is_placed_in_order",
    ),
    (
        "a service that a date removes runs all the same",
        f"{MOBILITY}/gtfs_calendar.py",
        "return running - self.removed.get(number, set()) | self.added.get(number, set())",
        "return running | self.added.get(number, set())",
        f"{TESTS}/test_gtfs.py::test_a_day_without_service_is_refused_with_the_days_of_the_feed",
    ),
    (
        "a vehicle is there through the longest break",
        f"{MOBILITY}/gtfs.py",
        "if wait_s > layover_s_max or",
        "if wait_s < 0 or",
        f"{TESTS}/test_gtfs.py::test_a_vehicle_is_away_between_trips_that_are_far_apart",
    ),
    (
        "a trip is not driven to its end if the next one starts elsewhere at once",
        f"{MOBILITY}/gtfs.py",
        " or jumps(earlier, later):",
        ":",
        f"{TESTS}/test_gtfs_where.py::test_a_trip_was_lost_whose_block_goes_on_elsewhere_at_once",
    ),
    (
        "a stay in the minute of the stop before is lost",
        f"{MOBILITY}/gtfs_paths.py",
        "arrival_s = before_s + min(MINUTE_S, (departure_s - before_s) / 2)",
        "arrival_s = before_s",
        f"{TESTS}/test_gtfs_where.py::"
        "test_a_stay_was_lost_at_a_stop_in_the_minute_of_the_stop_before",
    ),
    (
        "Tcl is looked for anywhere in a line, so that a time before it is not seen",
        f"{MOBILITY}/ns2.py",
        "match = TCL.match(text)",
        "match = TCL.search(text)",
        f"{TESTS}/test_ns2.py::test_tcl_that_has_to_be_run_to_know_what_it_says_is_refused",
    ),
    (
        "a latitude beyond the pole is a place",
        f"{MOBILITY}/lines.py",
        "if abs(value) > most:",
        "if abs(value) > 2 * most:",
        f"{TESTS}/test_gtfs_dirt.py::test_a_stop_beyond_the_poles_names_its_line",
    ),
    (
        "the date line is where the world ends",
        f"{MOBILITY}/geo.py",
        "if len(gaps) and gaps.max() > west + 360.0 - east:",
        "if not len(lon):",
        f"{TESTS}/test_gtfs_dirt.py::test_a_town_on_the_date_line_is_one_town",
    ),
    (
        "an export says who was there and nobody reads it",
        f"{MOBILITY}/contacts_list.py",
        "make_trace(names, lines.indexed(met, names), spans, changes)",
        "make_trace(names, lines.indexed(met, names), None, changes)",
        "tests/commands/test_trace_symptoms.py::"
        "test_simulating_the_export_gives_what_simulating_the_feed_gives",
    ),
    (
        "a time that is not alone is not the start",
        f"{MOBILITY}/columns.py",
        'at["start"] = at.pop("time")',
        'at.pop("time")',
        f"{TESTS}/test_odd_files.py::test_an_odd_file_is_read_as_a_person_would",
    ),
    (
        "a range for contacts is ignored",
        "src/beforehand/commands/tracing.py",
        "if not has_places(format) and range_m is not None:",
        "if not format:",
        "tests/commands/test_trace_symptoms.py::test_a_range_is_not_ignored_for_a_list_of_contacts",
    ),
    (
        "one wrong time of zero is taken for midnight",
        f"{MOBILITY}/gtfs_tables.py",
        "if last_s - arrival_s > WRAP_S and all(t_s + ahead_s < last_s for t_s in times_s):",
        "if last_s - arrival_s > WRAP_S:",
        f"{TESTS}/test_gtfs_dirt.py::test_one_time_of_zero_in_the_afternoon_is_no_midnight",
    ),
    (
        "strictness mends all the same",
        f"{MOBILITY}/repairs.py",
        "        if self.strict:\n",
        "        if self.strict and not kind:\n",
        f"{TESTS}/test_gtfs_dirt.py::test_strictly_all_that_would_be_mended_is_refused_together",
    ),
    (
        "who leaves at the instant another comes is still counted",
        f"{MOBILITY}/statistics.py",
        "order = np.lexsort((steps, times))",
        "order = np.lexsort((-steps, times))",
        f"{TESTS}/test_statistics.py::test_one_who_goes_makes_room_for_one_who_comes",
    ),
)
