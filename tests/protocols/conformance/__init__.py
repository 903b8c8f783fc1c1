"""The contract of `protocols.contract.base`, checked for every family that the checker's registry
names.

`subjects` turns each family into test subjects, `stage` runs and observes their cores, and each
`test_*` file covers one topic of the contract (docs/core.md).
"""
