"""Waivers: known losses that are let through for a time, and waivers that fail a run."""

from perfgate.baselines.waivers.faults import Known, WaiverFault, faults, known_of
from perfgate.baselines.waivers.file import default_file, load_waivers
from perfgate.baselines.waivers.waiver import LetThrough, Waiver, in_force, waive

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
