"""One task a file: how its models are fed, trained, validated and scored. See `TASKS`."""

from tasks import dialog, generation, reading, selection

TASKS = {"selection": selection, "dialog": dialog, "reading": reading, "generation": generation}
