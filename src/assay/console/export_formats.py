"""The formats of exports that need nothing of the command line. Data only."""

from collections.abc import Mapping
from typing import Final

from assay.console.console_exports import Exporter, journal_file, recording_file
from assay.console.har_export import har_file

OWN_EXPORTS: Final[Mapping[str, Exporter]] = {"recording": recording_file, "journal": journal_file, "har": har_file}
