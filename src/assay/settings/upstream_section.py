"""How servers at a URL are reached. No code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """Certificates and proxies for connections to servers at a URL. Certificates are always verified."""

    ca: str = ""
    """A file in PEM with the certificates to trust in place of the public ones."""

    certificate: str = ""
    """A file in PEM with the certificate that we show to servers, and those of its issuers behind it."""

    key: str = ""
    """A file in PEM with its private key, unless that is in the same file. It has no passphrase."""

    proxies: bool = False
    """Whether the proxies of the environment (``HTTPS_PROXY`` and the like) are used; never for this machine."""

    def __post_init__(self) -> None:
        if self.key and not self.certificate:
            raise ValueError("key needs certificate")
