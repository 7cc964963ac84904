"""
Recordings of other programs: each module reads one format, and yields the rows that are judged.

`importer_table` lists them. No clock, and no files: a format gets the lines of a file.
"""
