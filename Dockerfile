# Serves trained runs: docker build -t colloquy . ; docker run -p 8501:8501 -v $PWD/runs:/app/runs:ro colloquy
# For Ray Serve: docker build -t colloquy-ray --build-arg EXTRAS=ray .
FROM python:3.11-slim

ARG EXTRAS=
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY requirements.txt ./
RUN python -m pip install --no-cache-dir --requirement requirements.txt \
    && useradd --no-log-init --create-home --uid 1000 colloquy
COPY --chown=colloquy . .
RUN test -z "$EXTRAS" || python -m pip install --no-cache-dir --editable ".[$EXTRAS]"
USER colloquy
EXPOSE 8501
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
ENTRYPOINT ["python", "serve.py", "--host=0.0.0.0"]
