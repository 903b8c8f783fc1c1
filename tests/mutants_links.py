"""Ways to break keys, trust and links, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

KEYS = "src/beforehand/runtime/keys.py"
TRUST = "src/beforehand/runtime/trust.py"
SEAL = "src/beforehand/runtime/seal.py"
LINK = "src/beforehand/runtime/link.py"
MESH = "src/beforehand/runtime/mesh.py"
DISCOVERY = "src/beforehand/runtime/discovery.py"
KEYS_TEST = "tests/runtime/test_keys.py"
TRUST_TEST = "tests/runtime/test_trust.py"
SEAL_TEST = "tests/runtime/test_seal.py"
ATTACKS = "tests/runtime/test_attacks.py"
MESH_TEST = "tests/runtime/test_mesh.py"
COMMITS = "src/beforehand/runtime/commits.py"
COMMITS_TEST = "tests/runtime/test_commits.py"
BUNDLES = "src/beforehand/runtime/bundles.py"
STORE_TEST = "tests/runtime/test_store.py"
TREE_TEST = "tests/runtime/test_tree.py"
DISCOVERY_TEST = "tests/runtime/test_discovery.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a transaction begins while another is under way",
        COMMITS,
        "        if self._flying is not None:\n            return",
        "        if self._flying is not None and not self._open.rows:\n            return",
        f"{COMMITS_TEST}::test_what_waits_for_a_transaction_went_out_with_the_one_before_it",
    ),
    (
        "an older copy of a store is not noticed",
        "src/beforehand/core/barrier.py",
        "            self.forgotten = self._last_seq = seq\n",
        "            self._last_seq = seq\n",
        "tests/runtime/test_durability.py"
        "::test_with_an_older_copy_of_its_store_a_member_speaks_no_more",
    ),
    (
        "transactions follow each other without a pause",
        COMMITS,
        "        self._free_at = now + min(now - self._due_at, PAUSE_SECONDS_MAX)\n",
        "",
        f"{COMMITS_TEST}::test_after_a_transaction_the_next_waits_as_long_as_that_one_took",
    ),
    (
        "a bundle waits for more",
        COMMITS,
        "        if len(self._open.rows) >= PAUSE_ROWS:\n            self.hurry()\n",
        "",
        f"{COMMITS_TEST}::test_enough_for_a_transaction_waits_for_no_more",
    ),
    (
        "a tree with a wrong path is taken for whole",
        TRUST,
        "    if paths != grown:\n",
        "    if not paths:\n",
        f"{TREE_TEST}::test_of_those_that_come_together_one_with_another_path_is_refused",
    ),
    (
        "a path is known by its step, and not by its signature",
        TRUST,
        "            place = start + step\n",
        "            place = step\n",
        f"{TREE_TEST}::test_a_changed_signature_is_refused_even_if_the_root_is_known",
    ),
    (
        "a key is for everybody's eyes",
        KEYS,
        "os.O_EXCL, 0o600)",
        "os.O_EXCL, 0o644)",
        f"{KEYS_TEST}::test_a_key_file_is_read_back_and_is_for_its_owner_alone",
    ),
    (
        "a key that the group of the file may read is taken",
        KEYS,
        "mode & 0o077:",
        "mode & 0o007:",
        f"{KEYS_TEST}::test_a_key_that_others_may_use_is_refused_with_what_to_do",
    ),
    (
        "an invite is not compared with its checksum",
        KEYS,
        "if checksum != _checksum(content):",
        "if not checksum:",
        f"{KEYS_TEST}::test_an_invite_with_a_typing_error_or_cut_short_is_refused",
    ),
    (
        "a bound name goes to whoever shows another key",
        TRUST,
        "return known == public",
        "return True",
        f"{TRUST_TEST}::test_another_key_for_a_bound_name_is_refused_and_the_first_stays",
    ),
    (
        "a signature is not looked at",
        TRUST,
        "    except CryptoError:\n        return False",
        "    except CryptoError:\n        return True",
        f"{TRUST_TEST}::test_whatever_is_changed_in_a_message_is_noticed",
    ),
    (
        "names are kept without an end",
        TRUST,
        "if len(self._keys) >= NAMES_MAX:",
        "if False:",
        f"{TRUST_TEST}::test_a_member_that_invents_names_fills_no_memory",
    ),
    (
        "any greeting will do",
        SEAL,
        "not hmac.compare_digest(theirs[len(said) :], tag)",
        "not tag",
        f"{SEAL_TEST}::test_another_secret_or_group_is_refused_before_anything_is_said",
    ),
    (
        "an answer answers any greeting",
        SEAL,
        "role, before, said)[:HELLO_TAG_BYTES]",
        "role, said)[:HELLO_TAG_BYTES]",
        f"{SEAL_TEST}::test_an_answer_to_another_greeting_is_refused",
    ),
    (
        "fresh keys do not matter",
        SEAL,
        'b"root", shared, self._transcript)',
        'b"root", self._transcript)',
        f"{SEAL_TEST}::test_who_steals_all_lasting_keys_later_has_not_what_sealed_a_connection",
    ),
    (
        "the secret is in the greeting alone",
        SEAL,
        'root = derive(self._sealing_key, b"root",',
        'root = derive(bytes(32), b"root",',
        f"{SEAL_TEST}::test_the_secret_goes_into_what_seals_and_not_into_the_greeting_alone",
    ),
    (
        "both directions have one key",
        SEAL,
        'derive(root, b"listener")',
        'derive(root, b"dialer")',
        f"{SEAL_TEST}::test_what_one_said_and_is_thrown_back_does_not_open",
    ),
    (
        "records are not numbered",
        SEAL,
        "    count += 1\n",
        "    count = 1\n",
        f"{SEAL_TEST}::test_records_that_were_changed_left_out_doubled_or_swapped_do_not_open",
    ),
    (
        "an introduction counts for any connection",
        SEAL,
        "SIGNED_PREFIX + role + self._transcript + name.encode()",
        "SIGNED_PREFIX + role + name.encode()",
        f"{SEAL_TEST}::test_an_introduction_counts_for_its_connection_role_name_and_key_alone",
    ),
    (
        "a length is believed",
        LINK,
        "if size > self._record_bytes_max:",
        "if False:",
        f"{ATTACKS}::test_a_length_of_four_gigabytes_reserves_nothing[one too many]",
    ),
    (
        "a flood is let in",
        LINK,
        "if self._tokens < 0:",
        "if False:",
        f"{ATTACKS}::test_a_flood_of_records_without_frames_counts_too",
    ),
    (
        "frames go on while reading is paused",
        LINK,
        "if self.is_paused or self.state is State.ENDED:",
        "if self.state is State.ENDED:",
        f"{MESH_TEST}::test_nothing_comes_while_reading_is_paused_and_all_of_it_after",
    ),
    (
        "every question is answered, whether or not answers leave",
        LINK,
        "if self._owes_pong and not self._is_choked and",
        "if self._owes_pong and",
        f"{ATTACKS}::test_who_asks_and_never_reads_is_answered_once",
    ),
    (
        "a greeting is answered twice",
        MESH,
        "if hello in self._greetings:",
        "if False:",
        f"{ATTACKS}::test_a_recorded_connection_played_back_leads_nowhere",
    ),
    (
        "a name that is bound to another key is linked",
        MESH,
        "elif not self._trust.meet(who.name, who.public):",
        "elif not self._trust.meet(who.name, who.public) and False:",
        f"{ATTACKS}::test_nobody_takes_the_name_of_somebody_who_was_met",
    ),
    (
        "the newest connection is the link, whether or not the old one answers",
        MESH,
        "        if old is None:\n            self._keep(link)",
        "        if old is old:\n            self._keep(link)",
        f"{MESH_TEST}::test_a_second_process_with_the_same_key_does_not_take_a_living_link_away",
    ),
    (
        "who comes last waits for strangers",
        MESH,
        "oldest = min(waiting,",
        "oldest = max(waiting,",
        f"{ATTACKS}::test_strangers_keep_no_member_out",
    ),
    (
        "who has flooded comes back at once",
        MESH,
        "if kind in SHUNNED:",
        "if False:",
        f"{MESH_TEST}::test_a_link_can_be_cut_from_within_a_frame_and_nothing_follows",
    ),
    (
        "a link comes up where one is",
        MESH,
        '            old.end("replaced", "there is a new connection")\n',
        "            del old\n",
        f"{MESH_TEST}::test_a_new_connection_replaces_one_that_has_died_unnoticed",
    ),
    (
        "everybody who announces something is a member",
        DISCOVERY,
        "return hmac.compare_digest(expected, instance)",
        "return True",
        f"{DISCOVERY_TEST}::test_only_who_has_the_secret_knows_an_announcement",
    ),
    (
        "who was turned away knocks again at once",
        "src/beforehand/runtime/dialer.py",
        "(link.was_up and not link.was_turned_away)",
        "link.was_up",
        f"{MESH_TEST}::test_who_has_the_name_of_another_knocked_several_times_a_second_for_ever",
    ),
    (
        "a log that is broken in its middle is taken up to there",
        "src/beforehand/runtime/wal.py",
        "return lost if lost > UNSYNCED_COMMITS_MAX else 0",
        "return 0",
        "tests/runtime/test_store.py::"
        "test_a_bit_that_fell_over_in_the_log_took_what_came_after_it_with_it_without_a_word",
    ),
    (
        "who does not wait for the goodbye cuts it off",
        DISCOVERY,
        "await asyncio.shield(self._ending)",
        "await self._ending",
        f"{DISCOVERY_TEST}::test_who_does_not_wait_for_the_goodbye_left_sockets_open",
    ),
    (
        "what is left of a bundle keeps the key of what is gone",
        BUNDLES,
        "        key, content = bytes(left[0][0]), _encode(left)\n",
        "        content = _encode(left)\n",
        f"{STORE_TEST}::test_messages_go_one_by_one_from_the_rows_that_they_share[True]",
    ),
    (
        "what has changed on the disk gets a new checksum",
        BUNDLES,
        "        self._check(key, content, checksum)  # or what",
        "        # or what",
        f"{STORE_TEST}::test_a_message_that_changed_on_the_disk_is_noticed_when_its_neighbour_goes",
    ),
    (
        "a bundle is deleted with what is left of it",
        BUNDLES,
        "[None] * self._counts[place]:",
        "[None] * len(changes):",
        f"{STORE_TEST}::test_messages_go_one_by_one_from_the_rows_that_they_share[True]",
    ),
    (
        "messages that were not loaded are not known to be there",
        BUNDLES,
        "        if self._places is None:\n            self.load()\n",
        "        if self._places is None:\n            self._places = {}\n",
        f"{STORE_TEST}::test_messages_go_one_by_one_from_the_rows_that_they_share[False]",
    ),
    (
        "bundles as long as a transaction",
        BUNDLES,
        "or size > BUNDLE_BYTES)",
        "or size < 0)",
        f"{STORE_TEST}::test_messages_of_a_transaction_share_rows_that_are_not_too_long",
    ),
    (
        "a damaged store of an older version is migrated",
        BUNDLES,
        "checksum_of(kind, key, value) != checksum:",
        "checksum_of(kind, key, value) == None:",
        f"{STORE_TEST}::"
        "test_a_store_of_version_2_that_has_changed_on_the_disk_is_refused_and_left_alone",
    ),
    (
        "a child of a fork closes the store of its parent",
        "src/beforehand/runtime/store.py",
        "        if self._is_ours:\n",
        "        if True:\n",
        "tests/runtime/test_store.py::"
        "test_a_process_that_was_forked_took_the_log_from_under_its_parent",
    ),
    (
        "a message is said that nobody would take",
        "src/beforehand/runtime/group.py",
        "if earliest_us > self._lifetimes.latest_us(self._clock_us()):",
        "if False:",
        "tests/runtime/test_clocks.py::"
        "test_a_clock_that_was_weeks_ahead_left_a_member_whom_nobody_heard_without_a_word",
    ),
)
