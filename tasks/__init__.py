"""One task a file: how its models are fed, trained, validated and scored. See `TASKS`."""

from tasks import selection

TASKS = {"selection": selection}
