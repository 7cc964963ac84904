"""Export traces and durations of requests to an OpenTelemetry collector. Needs the telemetry extra."""

from assay.records.telemetry.telemetry import Telemetry

__all__ = ["Telemetry"]
