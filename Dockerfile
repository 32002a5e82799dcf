# Serves trained runs: docker build -t colloquy . ; docker run -p 8501:8501 -v $PWD/runs:/app/runs colloquy
FROM python:3.11-slim

WORKDIR /app
COPY requirements.txt .
RUN python -m pip install --no-cache-dir --requirement requirements.txt && useradd --create-home colloquy
COPY . .
USER colloquy
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
ENTRYPOINT ["python", "serve.py", "--host=0.0.0.0"]
