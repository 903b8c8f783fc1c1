"""Every family of cores that the checkers know, by the name that users write."""

from beforehand.check.case import Family
from beforehand.check.families.contacts import CONTACTS

FAMILIES: dict[str, Family] = {family.name: family for family in (*CONTACTS,)}
