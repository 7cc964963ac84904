# Assay in an image: `docker build -t assay .`; docs/install.md has the commands to run it with.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# Any of http, auth and telemetry, such as --build-arg EXTRAS=http,auth
ARG EXTRAS=http
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY examples/catalogue examples/catalogue
RUN python -m venv /opt/assay
RUN /opt/assay/bin/pip install --no-cache-dir ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
COPY --from=build /opt/assay /opt/assay
# Journals go to /state, a volume for those who keep them; assay.toml and assay.lock are looked for in /work.
RUN mkdir /state /work && chown 10001:10001 /state /work
ENV PATH=/opt/assay/bin:$PATH HOME=/state XDG_STATE_HOME=/state
WORKDIR /work
# By number: Kubernetes can then see that it is not root.
USER 10001:10001
ENTRYPOINT ["assay"]
CMD ["--help"]
