# kafkalite in a container: docker build -t kafkalite . && docker run -p 9092:9092 kafkalite
# Settings come as KAFKA_… variables, as in Apache Kafka's own image: KAFKA_LOG_RETENTION_MS=60000.

FROM python:3.12-slim AS build
WORKDIR /source
RUN pip install --no-cache-dir build
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY protocol_specs protocol_specs
COPY src src
RUN python -m build --wheel --outdir /wheels .

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir /wheels/*.whl \
    && useradd --system --uid 1000 --create-home kafkalite \
    && install --directory --owner kafkalite /var/lib/kafkalite
USER kafkalite
VOLUME /var/lib/kafkalite
EXPOSE 9092
STOPSIGNAL SIGTERM
# One process, which takes the signals itself.
ENTRYPOINT ["kafkalite", "container"]
