"""Counters and histograms of this process, which Prometheus reads at /metrics."""

import prometheus_client

PREFIX = {"namespace": "colloquy"}
REQUESTS = prometheus_client.Counter(
    "requests", "Requests answered.", ["model", "verb", "status"], **PREFIX
)
REQUEST_SECONDS = prometheus_client.Histogram(
    "request_seconds",
    "From the arrival of a request's body to its answer.",
    ["model", "verb"],
    **PREFIX,
)
QUEUED = prometheus_client.Gauge("queue_instances", "Instances that wait.", ["model"], **PREFIX)
