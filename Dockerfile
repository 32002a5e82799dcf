# Serves trained runs: docker build -t colloquy . ; docker run -p 8501:8501 -v $PWD/runs:/app/runs:ro colloquy --allowed_hosts=NAME
# For Ray Serve: docker build -t colloquy-ray --build-arg LOCK=lock-ray.txt .
# What is copied is in .dockerignore; the locks, which say how they were made, have version and hashes of every package.
ARG BASE=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
FROM ${BASE} AS build

ARG LOCK=lock.txt
ENV XDG_CACHE_HOME=/app/cache
WORKDIR /app
COPY serving/${LOCK} serving/
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --require-hashes --requirement serving/${LOCK}
COPY . .
# The index of responses, and bytecode, as the application may write neither.
RUN /opt/venv/bin/python -c "from colloquy.serving.models import open_model; open_model('', 'pretrained/dam-ubuntu-irc').predictor" \
    && /opt/venv/bin/python -m compileall -q .

FROM ${BASE}

ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=/app/cache
RUN useradd --no-log-init --create-home --uid 1000 colloquy
WORKDIR /app
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
USER 1000
EXPOSE 8501
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
ENTRYPOINT ["python", "serve.py", "--host=0.0.0.0"]
