"""The live feed of running guards: what a guard offers, and how other programs of the same user find and read it."""
