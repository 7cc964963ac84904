"""The findings of `assay check` in every format: for people, for scripts, and for the tools of a CI service."""
