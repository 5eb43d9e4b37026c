"""What threads of the engine reach at best, measured without a model."""

from __future__ import annotations

from borrador import _native
from borrador.doctor.facts import Speed

_SWEEP_BYTES = 256 << 20
_LEAST_BYTES = 32 << 20
_SWEEPS = 8


def measure_speed(threads: int, isa: str, free_bytes: int | None) -> Speed:
    """Read memory and multiply integers for half a second.

    Args:
        threads: that do so together.
        isa: the instruction set of the products.
        free_bytes: of memory; a quarter of it at most is used.
    """
    room = _SWEEP_BYTES if free_bytes is None else min(_SWEEP_BYTES, free_bytes // 4)
    # An engine of no weights: its kernels are what is measured.
    engine = _native.Transformer(_native.ModelShape(layers=1, ropes=1), arena_bytes=1, threads=threads, isa=isa)
    return Speed(
        read_bandwidth=_native.read_bandwidth(threads, max(room, _LEAST_BYTES), _SWEEPS),
        integer_peak=engine.integer_peak(),
    )
