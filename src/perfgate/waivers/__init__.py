"""Waivers: known losses that are let through for a time, and waivers that fail a run."""

from perfgate.waivers.faulty import WaiverFault, faults
from perfgate.waivers.file import default_file, load_waivers
from perfgate.waivers.known import Known, known_of
from perfgate.waivers.waiver import Waiver
from perfgate.waivers.waiving import LetThrough, in_force, waive

__all__ = [
    "Known",
    "LetThrough",
    "Waiver",
    "WaiverFault",
    "default_file",
    "faults",
    "in_force",
    "known_of",
    "load_waivers",
    "waive",
]
