"""The HTTP client of a probe, and the headers that all of its requests have."""

from collections.abc import Mapping, Sequence

from assay.edges.probe.server_probe import UnreachableError
from assay.edges.upstream_client import ClientSetupError, UpstreamClient, objection_to
from assay.settings.upstream_section import UpstreamSettings


def probe_client(
    url: str, client: Mapping[str, str], headers: Sequence[tuple[str, str]], upstream: UpstreamSettings
) -> tuple[UpstreamClient, dict[bytes, bytes]]:
    """
    Return the client for *url*, and its headers: the given ones, and our name from *client*.

    Raises `UnreachableError`.
    """
    if objection_to(url) is not None:
        raise UnreachableError("expected a URL that begins with http:// or https://")
    own = {b"user-agent": f"{client['name']}/{client['version']}".encode()}
    try:
        made = UpstreamClient(url, upstream)
    except ClientSetupError as error:
        raise UnreachableError(str(error)) from None
    return made, {name.lower().encode("ascii"): value.encode() for name, value in headers} | own
