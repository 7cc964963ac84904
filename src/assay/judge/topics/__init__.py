"""
The rules about earlier messages, a module for each topic: its state, its checks, its bounds.

`table` says which function hears which message. The order of the imports in `all_topics` is the order of the findings.
"""
