"""Export traces and durations of requests to an OpenTelemetry collector. Needs the telemetry extra."""

from assay.records.telemetry.background import Telemetry, wanted

__all__ = ["Telemetry", "wanted"]
