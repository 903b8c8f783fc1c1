"""The hash equals that of Spark, so that earlier draws stay the same."""

import numpy as np

from beforehand.kernels.xxhash64 import xxhash64


def test_the_hash_equals_that_of_spark():
    node = np.array([0, 7, 2**31 - 1, 1], np.int32)
    origin = np.array([0, -1, 3, 2], np.int32)
    seq = np.array([0, -1, 2**63 - 1, 1_200_000_000])
    # As `xxhash64(int(node), int(origin), bigint(seq))` of Spark SQL 4.3 answers.
    assert xxhash64(node, origin, seq).tolist() == [
        7073877212671409653,
        7945728607660182178,
        -7855076886842848711,
        -6617039558301849786,
    ]
