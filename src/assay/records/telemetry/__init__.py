"""Traces and durations of requests, for an OpenTelemetry collector. An extra; without it nothing here is needed."""

from assay.records.telemetry.background import Telemetry, wanted

__all__ = ["Telemetry", "wanted"]
