"""Waivers: known losses that are let through for a time, and waivers that fail a run."""

from perfgate.baselines.waivers.coverage import LetThrough, in_force, waive
from perfgate.baselines.waivers.faults import WaiverFault, faults
from perfgate.baselines.waivers.file import default_file, load_waivers
from perfgate.baselines.waivers.targets import Known, known_of
from perfgate.baselines.waivers.waiver import Waiver

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
