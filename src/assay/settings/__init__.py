"""
The configuration of everything: one TOML file, environment variables, options of the command line; the later wins.

A section is a frozen dataclass, all of whose fields have defaults, and a field of `Settings`. Its fields can be such
dataclasses in turn, or tables of them by names that the operator chooses; one that may be None is made if its table is
there, however empty. What may be written in a file, which variables there are, what is checked and what is said about a
slip all follow from the dataclasses. Reads that one file and nothing else; knows no command.
"""

from assay.settings.auth_section import ApiKey, Auth, Jwt
from assay.settings.caution import load_cautiously
from assay.settings.loading import load, load_as
from assay.settings.locations import Log
from assay.settings.sections import JournalSettings, Settings, TelemetrySettings, TierSettings
from assay.settings.setting_errors import SettingsError

__all__ = [
    "ApiKey",
    "Auth",
    "JournalSettings",
    "Jwt",
    "Log",
    "Settings",
    "SettingsError",
    "TelemetrySettings",
    "TierSettings",
    "load",
    "load_as",
    "load_cautiously",
]
