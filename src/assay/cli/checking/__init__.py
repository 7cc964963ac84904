"""How `assay check` reads: files are split into units of work, judged in one or many processes, and merged in order."""
