"""
All settings, from one TOML file, environment variables and command-line options; the later source wins.

A section is a frozen dataclass, all of whose fields have defaults, and a field of `Settings`. Its fields can be such
dataclasses in turn, or tables of them with names that the operator chooses; one that may be None is created if its
table exists, even if it is empty. The keys of the file, the variables, the checks and the error messages all follow
from the dataclasses. This package reads that file, and the schemas that it or an option names; it knows no command.
"""

from assay.model.errors import SettingsError
from assay.settings.auth_section import ApiKey, Auth, Jwt
from assay.settings.loading import load, load_cautiously
from assay.settings.sections import JournalSettings, Settings, TelemetrySettings, TierSettings
from assay.settings.settings_files import Log

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
    "load_cautiously",
]
