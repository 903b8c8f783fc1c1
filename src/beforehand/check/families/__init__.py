"""Every protocol family that the checkers know, by its name on the command line."""

from beforehand.check.families.baselines import CkFamily, TcpFamily
from beforehand.check.families.contacts import CONTACTS
from beforehand.check.families.group import GroupFamily
from beforehand.check.families.mobile import MobileFamily
from beforehand.check.families.observer import ObserverFamily
from beforehand.check.families.vcube import VCubeFamily
from beforehand.check.net.case import Family

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        *(*CONTACTS, GroupFamily(), GroupFamily("stamped"), VCubeFamily(), ObserverFamily()),
        *(MobileFamily(), MobileFamily(floods=True), CkFamily(), TcpFamily()),
    )
}
