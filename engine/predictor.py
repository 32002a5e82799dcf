"""A loaded model that answers examples of plain Python values: what the chats and `serving/` use."""

import abc

from base.files import UserError


class Predictor(abc.ABC):
    """What `engine.task.Task.predictor` makes of a run, once; its calls may come from several threads."""

    fields = {}
    """The fields of an instance: `{name: JSON schema of its value}`; one with a `default` may be left out. Schemas use
    `type` (`string`, `array`, `object`), `items`, `properties`, `description` and `default`."""

    def predict(self, instances):
        """Answers examples, all in one batch where their sizes allow it.

        Args:
            instances: List of dicts, as `fields` says.

        Returns:
            A list of dicts ready for JSON, one for each instance in turn.

        Raises:
            UserError: where an instance is not what `fields` says; it names the instance by its number.
        """
        checked = self.checked(instances)
        return self.answer(checked) if checked else []

    def checked(self, instances):
        """The instances with all their fields, without an answer.

        Raises:
            UserError: as of `predict`.
        """
        return [self._checked(instance, number) for number, instance in enumerate(instances)]

    def check(self, instance, where):
        """Refuses what `fields` cannot say; nothing here.

        Args:
            instance: Has all fields.
            where: Begins the message.

        Raises:
            UserError: where a value is wrong.
        """
        return

    @abc.abstractmethod
    def answer(self, instances):
        """`predict` for one instance or more that were checked and have all fields."""

    def explain(self, instance, details=False):
        """Answers one example and says what the model attended to.

        Args:
            instance: A dict, as `fields` says.
            details: Adds the maps of every module, head and level by itself, each with a `group`: a text that
                neighbours in a picture have in common. The weights of a match matrix are its dot products.

        Returns:
            What `predict` returns, and beside it `attention`: a list of
            `{"title", "rows", "columns", "weights"}`, where `rows` and `columns` are lists of texts and `weights` a
            list of rows of floats in [0, 1]; empty for a model without attention.

        Raises:
            UserError: as of `predict`.
        """
        checked = self._checked(instance, 0)
        answer = self.answer_with_attention(checked)
        if details:
            answer["attention"] = [*answer["attention"], *self.details(checked, answer)]
        return answer

    def details(self, instance, answer):
        """What `explain` adds for a picture; nothing here.

        Args:
            instance: Was checked and has all fields.
            answer: What `answer_with_attention` returned for it.

        Returns:
            List of `{"group", "title", "rows", "columns", "weights"}`.
        """
        return []

    @abc.abstractmethod
    def answer_with_attention(self, instance):
        """`explain` for an instance that was checked and has all fields."""

    def _checked(self, instance, number):
        where = f"instance {number}"
        if not isinstance(instance, dict):
            raise UserError(f"{where}: expected an object with {', '.join(self.fields)}. Received: {_shown(instance)}")
        unknown = [name for name in instance if name not in self.fields]
        if unknown:
            raise UserError(f"{where}: expected the fields {', '.join(self.fields)}. Received: {unknown[0]}")
        values = {}
        for name, schema in self.fields.items():
            if name not in instance and "default" not in schema:
                raise UserError(f"{where}: the field {name} is missing")
            values[name] = instance.get(name, schema.get("default"))
            if name in instance:
                _check_value(values[name], schema, f"{where}, {name}")
        self.check(values, where)
        return values


def _check_value(value, schema, where):
    kind = {"string": str, "array": list, "object": dict}[schema["type"]]
    if not isinstance(value, kind):
        raise UserError(f"{where}: expected {schema['type']}. Received: {_shown(value)}")
    if kind is list:
        for number, item in enumerate(value):
            _check_value(item, schema["items"], f"{where} {number}")
    if kind is dict:
        for name, of_name in schema["properties"].items():
            if name not in value:
                raise UserError(f"{where}: the field {name} is missing")
            _check_value(value[name], of_name, f"{where}, {name}")


def _shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
