"""What one measurement has found."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Figures:
    """Of the server, except for the latencies, which the client saw, and what the client itself used."""
    cpu_us_per_delivery: float
    client_us_per_delivery: float
    p50_us: float
    p99_us: float
    connect_cpu_us: float
    kb_per_socket: float
    deliveries: int
