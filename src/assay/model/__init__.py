"""The lowest layer: values, limits, error codes, names. Imports no other package of ours."""
