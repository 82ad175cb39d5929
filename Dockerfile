# A thalweg node. The compiler for hnswlib and pip stay in the first stage.
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN python -m venv --without-pip /opt/thalweg
# Portable code: the image may run on another processor than it was built on (half as fast at indexing).
ENV HNSWLIB_NO_NATIVE=1
WORKDIR /src
COPY requirements.lock ./
RUN pip --python /opt/thalweg/bin/python install --no-cache-dir --require-hashes --no-deps -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY streams streams
COPY storage storage
COPY processors processors
COPY mcp_ingress mcp_ingress
COPY thalweg thalweg
RUN pip --python /opt/thalweg/bin/python install --no-cache-dir --no-deps .

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 thalweg && install -d -m 0700 -o thalweg -g thalweg /var/lib/thalweg
COPY --from=build /opt/thalweg /opt/thalweg
ENV PATH=/opt/thalweg/bin:$PATH THALWEG_HOME=/var/lib/thalweg PYTHONUNBUFFERED=1
USER thalweg
VOLUME /var/lib/thalweg
EXPOSE 7733
ENTRYPOINT ["thalweg"]
CMD ["up"]
