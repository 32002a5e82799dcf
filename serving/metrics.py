"""Counters and histograms that Prometheus reads at /metrics."""

import prometheus_client

BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64]


class Metrics:
    """Counts and times of this process."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)
        options = {"namespace": "colloquy", "registry": self.registry}
        self._requests = prometheus_client.Counter(
            "requests", "Requests answered.", ["model", "verb", "status"], **options
        )
        self._request_seconds = prometheus_client.Histogram(
            "request_seconds",
            "From the arrival of a request's body to its answer.",
            ["model", "verb"],
            **options,
        )
        self._batch_instances = prometheus_client.Histogram(
            "batch_instances",
            "Instances per call of a model.",
            ["model", "verb"],
            buckets=BATCH_SIZES,
            **options,
        )
        self._model_seconds = prometheus_client.Histogram(
            "model_seconds", "Seconds per call of a model.", ["model", "verb"], **options
        )
        self._queued = prometheus_client.Gauge(
            "queue_instances", "Instances that wait.", ["model"], **options
        )

    def count_request(self, model, verb, status, seconds):
        self._requests.labels(model, verb, status).inc()
        self._request_seconds.labels(model, verb).observe(seconds)

    def count_batch(self, model, verb, instances, seconds):
        self._batch_instances.labels(model, verb).observe(instances)
        self._model_seconds.labels(model, verb).observe(seconds)

    def as_text(self, queued):
        """Everything as Prometheus reads it; `queued` is `{model: instances that wait}`."""
        for model, count in queued.items():
            self._queued.labels(model).set(count)
        return prometheus_client.generate_latest(self.registry)
