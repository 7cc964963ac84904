"""Asking a server what it offers."""
