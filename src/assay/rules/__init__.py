"""
Every rule that is enforced, in one table: what it asks, its source, and what to do about it.

Each rule is once in ``rules.txt``. `assay rules`, `assay explain` and the page of all rules are renderings of the
table. No code here judges anything.
"""

from assay.rules.table import RULES, Rule, broken, violation

__all__ = ["RULES", "Rule", "broken", "violation"]
