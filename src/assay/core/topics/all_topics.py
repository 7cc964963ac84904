"""Loads every topic, so that `table` is complete. The order is that of the findings about one message."""

from assay.core.topics import (  # noqa: I001 - the order has a meaning
    tools,
    progress,
    extensions,
    rounds,
    lists,
    capabilities,
    handshake,
    forms,
    errors,
    cancellation,
    logs,
    subscriptions,
    results,
    tasks,
    apps,
    skills,
)

__all__ = [
    "apps",
    "cancellation",
    "capabilities",
    "errors",
    "extensions",
    "forms",
    "handshake",
    "lists",
    "logs",
    "progress",
    "results",
    "rounds",
    "skills",
    "subscriptions",
    "tasks",
    "tools",
]
