"""One task a file: how its models are fed, trained, validated and scored. See `TASKS`."""

from tasks.dialog import task as dialog
from tasks.generation import task as generation
from tasks.reading_comprehension import task as reading
from tasks.selection import task as selection

TASKS = {"selection": selection, "dialog": dialog, "reading": reading, "generation": generation}
