"""Load on a server on this machine: requests that arrive at random, and clients that mean no good.

Latencies count from the moment at which a request was due, so that a server that stalls is not spared the requests
which it kept from being sent.
"""

import asyncio
import collections
import dataclasses
import json
import time

HOST = "127.0.0.1"
CONNECTIONS = 128
"""Ordinary requests that may be open at once; one more counts as an error."""
SLOW = 8
"""Slow clients at once."""
KINDS = ("huge", "malformed", "wrong", "slow", "disconnecting")
"""What hostile clients do, in turn."""


@dataclasses.dataclass
class Minute:
    """What happened to the requests that were due within a minute."""

    milliseconds: list = dataclasses.field(default_factory=list)
    errors: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    memory: int = 0
    """Of the server at the end, bytes."""
    cpu: list = dataclasses.field(default_factory=list)
    """The server's CPU time, seconds, now and then: where it grows slowly and requests wait, others have the cores."""

    def row(self, number):
        """A row of a record."""
        found = sorted(self.milliseconds) or [float("nan")]
        return {
            "minute": number,
            "requests": len(self.milliseconds),
            "p50_ms": round(found[len(found) // 2], 1),
            "p99_ms": round(found[min(len(found) - 1, int(0.99 * len(found)))], 1),
            "memory_MB": round(self.memory / 1e6),
            "cpu_seconds": round(self.cpu[-1] - self.cpu[0], 1) if self.cpu else 0.0,
            "errors": sum(self.errors.values()),
        }


class Client:
    """HTTP/1.1 with connections that are kept open, on loopback alone.

    Args:
        port: Of the server.
        path: What is posted to.
    """

    def __init__(self, port, path):
        self.port, self.path, self._idle = port, path, []

    def message(self, body, length=None):
        """The bytes of a request; `length`: what it says of its body."""
        length = len(body) if length is None else length
        head = f"POST {self.path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {length}\r\n\r\n".encode() + body

    async def post(self, body):
        """The status and the body of the answer."""
        while self._idle and self._idle[-1][0].at_eof():  # the server has closed it meanwhile
            self._idle.pop()[1].close()
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(HOST, self.port)
        try:
            writer.write(self.message(body))
            status, answer, closes = await answer_of(reader)
        except BaseException:
            writer.close()
            raise
        if closes:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return status, answer

    def close(self):
        """Closes what is open."""
        while self._idle:
            self._idle.pop()[1].close()


async def answer_of(reader):
    """The status, the body and whether the server closes the connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].split("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length), "connection: close" in head


# === Ordinary clients ===


async def closed_loop(client, bodies, clients, seconds, rng, hostile=0.0):
    """Requests per second where each of some clients sends the next one as soon as it is answered.

    Args:
        client, bodies, rng, hostile: As of `open_loop`; hostile requests count too, and nobody waits for them.
        clients: How many.
        seconds: How long.
    """
    attackers, attacks = Hostile(client, bodies[0], collections.Counter()), []
    begin, done = time.perf_counter(), 0

    async def ask():
        nonlocal done
        while time.perf_counter() - begin < seconds:
            if rng.random() < hostile:
                attacks.append(asyncio.create_task(attackers.attack(KINDS[done % len(KINDS)])))
                done += 1
            else:
                status, _ = await client.post(bodies[done % len(bodies)])
                done += status == 200

    await asyncio.gather(*(ask() for _ in range(clients)))
    speed = done / (time.perf_counter() - begin)
    await asyncio.gather(*attacks)
    return speed


async def open_loop(client, bodies, rate, seconds, rng, usage, hostile=0.0):
    """Requests at random moments, whatever the server does.

    Args:
        client: A `Client`.
        bodies: Of ordinary requests, in turn.
        rate: Requests per second.
        seconds: How long.
        rng: A `random.Random`.
        usage: Function that returns the server's memory in bytes, and its CPU time in seconds.
        hostile: The fraction of requests that come from hostile clients.

    Returns:
        `(list of Minute, Counter of what became of the hostile requests)`.
    """
    minutes, outcomes = collections.defaultdict(Minute), collections.Counter()
    attackers, tasks, ordinary = Hostile(client, bodies[0], outcomes), set(), 0
    begin, due, sent = time.perf_counter(), 0.0, 0

    async def ask(minute, body, at):
        nonlocal ordinary
        ordinary += 1
        try:
            status, _ = await client.post(body)
            if status == 200:
                minute.milliseconds.append(1000 * (time.perf_counter() - at))
            else:
                minute.errors[str(status)] += 1
        except (OSError, asyncio.IncompleteReadError) as error:
            minute.errors[type(error).__name__] += 1
        finally:
            ordinary -= 1

    while due < seconds:
        await asyncio.sleep(max(0.0, begin + due - time.perf_counter()))
        minute = minutes[int(due // 60)]
        if rng.random() < hostile:
            work = attackers.attack(KINDS[sent % len(KINDS)])
        elif ordinary < CONNECTIONS:
            work = ask(minute, bodies[sent % len(bodies)], begin + due)
        else:
            work = None
            minute.errors["no connection was free"] += 1
        if work:
            tasks.add(task := asyncio.create_task(work))
            task.add_done_callback(tasks.discard)
        if sent % 100 == 0 or not minute.cpu:
            minute.memory, cpu = usage()
            minute.cpu.append(cpu)
        sent, due = sent + 1, due + rng.expovariate(rate)
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    return [minutes[number] for number in sorted(minutes)], outcomes


# === Hostile clients ===


class Hostile:
    """Clients that send what no client should.

    Args:
        client: A `Client`, for its port and path.
        body: Of an ordinary request.
        outcomes: Counter of `KIND: what the server did`.
    """

    def __init__(self, client, body, outcomes):
        self.client, self.body, self.outcomes, self.slow_now = client, body, outcomes, 0

    async def attack(self, kind):
        """One hostile request of a kind of `KINDS`, on a connection of its own."""
        if kind == "slow" and self.slow_now >= SLOW:
            kind = "malformed"
        reader, writer = await asyncio.open_connection(HOST, self.client.port)
        try:
            outcome = await getattr(self, f"_{kind}")(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            outcome = "closed"
        writer.close()
        self.outcomes[f"{kind}: {outcome}"] += 1

    async def _huge(self, reader, writer):
        writer.write(self.client.message(b'{"instances": "' + b"x" * 3_000_000 + b'"}'))
        return (await answer_of(reader))[0]

    async def _malformed(self, reader, writer):
        writer.write(self.client.message(self.body[: len(self.body) // 2]))
        return (await answer_of(reader))[0]

    async def _wrong(self, reader, writer):
        writer.write(self.client.message(json.dumps({"instances": [{"turns": [["deep"] * 50] * 50}]}).encode()))
        return (await answer_of(reader))[0]

    async def _slow(self, reader, writer):
        """A byte now and then, until the server has had enough, or for twenty seconds."""

        async def drip():
            for byte in self.body:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.25)

        self.slow_now += 1
        writer.write(self.client.message(b"", len(self.body)))
        dripping = asyncio.create_task(drip())
        try:
            return (await asyncio.wait_for(answer_of(reader), 20))[0]
        except TimeoutError:
            return "left unfinished"
        finally:
            dripping.cancel()
            self.slow_now -= 1

    async def _disconnecting(self, reader, writer):
        writer.write(self.client.message(self.body))
        await writer.drain()
        return "left without the answer"


def varied(examples, rng):
    """Instances like some examples, of other sizes: a shorter conversation, fewer candidates, part of a text."""
    instance = dict(rng.choice(examples)["instance"])
    for field, value in instance.items():
        if isinstance(value, list):
            instance[field] = value[-rng.randint(1, len(value)) :]
        elif field == "passage":
            words = value.split()
            instance[field] = " ".join(words[: rng.randint(len(words) // 2, len(words))])
    return instance
