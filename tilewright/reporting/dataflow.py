"""Which tensors the kernels move, and how many bytes of each."""

from __future__ import annotations

from rich.table import Table

from ..pictures.dataflow import dataflow
from ..pictures.tensors import moved_tensors, tensors
from ..profiling import Profile
from ..render import bytes_text, table
from .figures import figure
from .section import Section, Subject


def dataflow_section(subject: Subject) -> Section | None:
    """Traffic by tensor, and the graph of tensors and kernels with the bytes on its edges."""
    profile = subject.profile
    if profile is None:
        return None
    parts = [traffic_by_tensor(profile), figure(tensors(profile)), figure(dataflow(profile))]
    return Section("dataflow", "What flows where", parts, profile.traffic.json())


def traffic_by_tensor(profile: Profile) -> Table:
    """Per tensor off chip: what it is, its bytes, those moved, and how often that is the whole of it."""
    right = ("bytes", "read", "written", "times")
    made = table("tensor", "is", *right, right=right)
    for tensor, read, written in moved_tensors(profile.traffic):
        times = f"{(read + written) / tensor.size:.2f}" if tensor.size else ""
        made.add_row(tensor.name, tensor.role, *map(bytes_text, (tensor.size, read, written)), times)
    return made
