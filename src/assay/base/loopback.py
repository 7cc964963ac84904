"""Whether a host name leads to this machine. No I/O: nothing is resolved."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether *host* can be reached only from this machine."""
    name = host.casefold().strip("[]")
    try:
        return ip_address(name).is_loopback
    except ValueError:
        # Of all names, only this one always resolves to this machine.
        return name == "localhost"


def leads_here(host: str) -> bool:
    """Whether a URL with *host* leads to this machine, as every name under localhost should (RFC 6761, 6.3)."""
    return is_loopback(host) or host.casefold().endswith(".localhost")
