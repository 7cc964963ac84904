"""Loads every topic, so that `table` is complete. The order is that of the findings about one message."""

from assay.judge.topics import (  # noqa: I001 - the order has a meaning
    tools,
    progress,
    extensions,
    rounds,
    paging,
    capabilities,
    handshake,
    forms,
    errors,
    cancellation,
    logs,
    subscriptions,
    roots,
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
    "logs",
    "paging",
    "progress",
    "roots",
    "rounds",
    "skills",
    "subscriptions",
    "tasks",
    "tools",
]
