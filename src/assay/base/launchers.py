"""
Programs that start other programs, and which of their options take a value. No I/O.

After an unknown option, the command line alone does not show whether the next word is its value.
"""

import re
from typing import Final

RUNNERS: Final = frozenset({"npx", "bunx", "uvx", "pipx"})
"""Programs whose first plain argument is the package to run."""

VERBS: Final = frozenset({"run", "exec", "x", "dlx", "tool"})
"""Words between a package manager and the package it runs: ``uv run``, ``npm exec``, ``pnpm dlx``, ``uv tool run``."""

MANAGERS: Final = frozenset(
    {"npm", "pnpm", "yarn", "bun", "uv", "deno", "docker", "podman", "nerdctl", "pipx", "poetry",
     "go"}
)  # fmt: skip

CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})

INTERPRETERS: Final = re.compile(r"(python|pypy|node|nodejs|ruby|perl|php|javaw|java|tsx|ts-node|deno|bun)[0-9.]*")

_NODE: Final = frozenset({"node", "nodejs", "tsx", "ts-node"})
_JAVA: Final = frozenset({"java", "javaw"})

_WITH_VALUE: Final = frozenset(
    {"-p", "-c", "--package", "--from", "--with", "--python", "--directory", "--project", "--env-file", "-W", "-X",
     "-r", "--require", "--import", "--loader", "-C", "--prefix", "--index-url", "--extra", "--group", "--registry",
     "--workspace", "-w", "--cache", "--userconfig", "--loglevel", "--call", "--filter", "--cwd", "--config",
     "--index", "--default-index", "--extra-index-url", "--find-links", "--with-editable", "--with-requirements",
     "--constraints", "--overrides", "--resolution", "--prerelease", "--exclude-newer", "--cache-dir",
     "--config-file", "--color", "--spec", "--pip-args", "--suffix", "--no-extra", "--only-group", "--no-group",
     "--python-preference", "--python-platform", "--link-mode", "--keyring-provider", "--allow-insecure-host"}
)  # fmt: skip
_CONTAINER: Final = frozenset(
    {"-a", "--add-host", "--annotation", "--attach", "--blkio-weight", "--blkio-weight-device", "-c", "--cap-add",
     "--cap-drop", "--cgroup-parent", "--cgroupns", "--cidfile", "--cpu-count", "--cpu-percent", "--cpu-period",
     "--cpu-quota", "--cpu-rt-period", "--cpu-rt-runtime", "--cpu-shares", "--cpus", "--cpuset-cpus", "--cpuset-mems",
     "--detach-keys", "--device", "--device-cgroup-rule", "--device-read-bps", "--device-read-iops",
     "--device-write-bps", "--device-write-iops", "--dns", "--dns-opt", "--dns-option", "--dns-search",
     "--domainname", "-e", "--entrypoint", "--env", "--env-file", "--expose", "--gpus", "--group-add", "-h",
     "--health-cmd", "--health-interval", "--health-retries", "--health-start-interval", "--health-start-period",
     "--health-timeout", "--hostname", "--io-maxbandwidth", "--io-maxiops", "--ip", "--ip6", "--ipc", "--isolation",
     "--kernel-memory", "-l", "--label", "--label-file", "--link", "--link-local-ip", "--log-driver", "--log-opt",
     "-m", "--mac-address", "--memory", "--memory-reservation", "--memory-swap", "--memory-swappiness", "--mount",
     "--name", "--net", "--net-alias", "--network", "--network-alias", "--oom-score-adj", "-p", "--pid",
     "--pids-limit", "--platform", "--publish", "--pull", "--restart", "--runtime", "--security-opt", "--shm-size",
     "--stop-signal", "--stop-timeout", "--storage-opt", "--sysctl", "--tmpfs", "-u", "--ulimit", "--user",
     "--userns", "--uts", "-v", "--volume", "--volume-driver", "--volumes-from", "-w", "--workdir",
     "--arch", "--authfile", "--conmon-pidfile", "--creds", "--cert-dir", "--decryption-key", "--env-merge",
     "--gidmap", "--uidmap", "--subgidname", "--subuidname", "--hooks-dir", "--image-volume", "--init-path", "--os",
     "--passwd-entry", "--personality", "--pidfile", "--pod", "--pod-id-file", "--requires", "--retry",
     "--retry-delay", "--rootfs", "--sdnotify", "--seccomp-policy", "--secret", "--systemd", "--timeout", "--tz",
     "--umask", "--unsetenv", "--variant", "--log-level", "-H", "--host", "--context", "--tlscacert", "--tlscert",
     "--tlskey"}
)  # fmt: skip
_NODE_VALUES: Final = frozenset(
    {"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file",
     "--env-file-if-exists", "--max-old-space-size", "--max-semi-space-size", "--max-http-header-size",
     "--stack-size", "--stack-trace-limit", "--inspect-port", "--input-type", "--icu-data-dir", "--title",
     "--openssl-config", "--tls-cipher-list", "--tls-keylog", "--unhandled-rejections", "--dns-result-order",
     "--disable-warning", "--redirect-warnings", "--report-dir", "--report-directory", "--report-filename",
     "--secure-heap", "--snapshot-blob", "--test-name-pattern", "--trace-event-categories", "--watch-path",
     "--experimental-default-type", "--diagnostic-dir", "--cpu-prof-dir", "--heap-prof-dir", "--localstorage-file",
     "--v8-pool-size", "-P", "--project", "--tsconfig", "-O", "--compiler-options", "--cwd"}
)  # fmt: skip
_JAVA_VALUES: Final = frozenset(
    {"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
     "--add-exports", "--add-opens", "--add-reads", "--enable-native-access", "--limit-modules", "--patch-module",
     "--source", "-d", "--describe-module"}
)  # fmt: skip

_FLAGS: Final = frozenset(
    {"--yes", "--quiet", "--silent", "--verbose", "--version", "--help", "--offline", "--prefer-offline",
     "--prefer-online", "--ignore-scripts", "--ignore-existing", "--global", "--workspaces", "--bun", "--latest",
     "--isolated", "--refresh", "--native-tls", "--system-certs", "--frozen", "--locked", "--active", "--exact",
     "--managed-python", "--upgrade", "--reinstall", "--editable", "--all-extras", "--all-groups", "--dev",
     "--script", "--gui-script", "--module", "--system-site-packages", "--pypackages", "--fetchers", "--force",
     "--rm", "--init", "--interactive", "--tty", "--detach", "--privileged", "--read-only", "--publish-all",
     "--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--replace", "--rmi", "--env-host", "--quiet-pull",
     "--tls", "--tlsverify", "--debug", "--watch", "--test", "--check", "--interpreted", "--jitless", "--hot",
     "--smol", "--unstable", "--expose-gc", "--preserve-symlinks", "--preserve-symlinks-main", "--frozen-intrinsics",
     "--abort-on-uncaught-exception", "--pending-deprecation", "--throw-deprecation", "--force-fips",
     "--use-system-ca", "--use-openssl-ca", "--use-bundled-ca", "--transpile-only", "--files", "--esm", "--swc",
     "--strict", "--optimize_for_size", "--cpu-prof", "--heap-prof", "--cached-only", "--reload", "--permission",
     "--dry-run", "--finalization", "--insecure", "--verify-entry-snapshots", "--if-present", "--parallel"}
)  # fmt: skip
"""Long options without a value, of any launcher."""

_FLAG: Final = re.compile(
    r"--(no|allow|deny|experimental|enable|disable|trace|inspect|unstable|show|harmony|report)\b.*"
)


def takes_value(program: str, option: str) -> bool | None:
    """Return whether the word after *option* of the launcher *program* is its value; None if that is unknown."""
    if "=" in option or not option.startswith("-") or option in {"-", "--"}:
        return False
    if option in _values(program):
        return True
    if not option.startswith("--") or option in _FLAGS or _FLAG.fullmatch(option):
        return False
    return None


def _values(program: str) -> frozenset[str]:
    if program in CONTAINERS:
        return _CONTAINER
    if program in _NODE:
        return _NODE_VALUES
    return _JAVA_VALUES if program in _JAVA else _WITH_VALUE
