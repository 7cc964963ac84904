"""Assay judges every message of a Model Context Protocol conversation."""
