"""
Every rule that is enforced, in one table: what it asks, where it comes from, what to do about it.

Each stands once, in the module of its family. `assay rules`, `assay explain` and the page of all rules are renderings
of the table. No code here judges anything.
"""

from assay.rules.rule import Rule
from assay.rules.table import RULES, broken, violation

__all__ = ["RULES", "Rule", "broken", "violation"]
