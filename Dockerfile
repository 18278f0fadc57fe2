# kafkalite in a container: docker build -t kafkalite . && docker run -p 9092:9092 kafkalite
# Takes the place of apache/kafka, confluentinc/cp-kafka and bitnami/kafka: docs/container.md.

ARG PYTHON=python:3.12-slim

FROM ${PYTHON} AS build
WORKDIR /source
RUN apt-get update && apt-get install --yes --no-install-recommends binutils
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY protocol_specs protocol_specs
COPY src src
# Small: without symbols, and without a second zstandard, for other Pythons than this.
RUN python -m pip install --no-cache-dir --no-compile --prefix /install '.[security]' \
    && find /install -name '*.so' -exec strip --strip-unneeded {} + \
    && rm -f /install/lib/python*/site-packages/zstandard/_cffi.* \
    && python -m compileall -q --invalidation-mode unchecked-hash /install/lib

FROM ${PYTHON}
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/kafka/bin \
    PYTHONDONTWRITEBYTECODE=1
RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl netcat-openbsd \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
COPY --from=build /install /usr/local
# Apache Kafka's command line tools, natively.
RUN kafkalite home /opt/kafka
# The scripts that other images have, where they have them; the group root may write them, so that
# users whose id an engine makes up can, too.
RUN useradd --uid 1000 --gid 0 --create-home kafkalite \
    && chmod g=u /home/kafkalite \
    && python -m kafkalite.container ""
USER 1000
WORKDIR /home/kafkalite
VOLUME /var/lib/kafka/data /etc/kafka/secrets /mnt/shared/config
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s CMD ["kafkalite-healthy"]
# No entry point: what others give as a command is run as it is.
CMD ["/etc/kafka/docker/run"]
