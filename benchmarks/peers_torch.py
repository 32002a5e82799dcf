"""The networks of `benchmarks.peers` in PyTorch; needs `torch` and `numpy` alone, and is started by
that benchmark.

python benchmarks/peers_torch.py WHAT BATCHES.npz SETTINGS.json

Written as one would write them in PyTorch: `nn.LSTM` and `nn.GRU` on packed sequences, Adam with
its `foreach` default, beam search as a loop in Python. For each line on standard input it computes
the batches once and prints a line of JSON.
"""

import json
import resource
import sys
import time
import types

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LOWEST = -1e30
EOS, UNKNOWN = 1, 2


class Recurrent(nn.Module):
    """`nn.LSTM` or `nn.GRU` in both directions, which reads no padding."""

    def __init__(self, kind, inputs, units):
        super().__init__()
        self.rnn = kind(inputs, units, batch_first=True, bidirectional=True)

    def forward(self, x, mask):
        packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        y, state = self.rnn(packed)
        return pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], state


class BiDAF(nn.Module):
    """Seo et al. 2017; layer by layer as `models.bidaf`."""

    def __init__(self, sizes):
        super().__init__()
        self.width, self.drop, d = sizes.character_width, nn.Dropout(sizes.dropout), sizes.hidden
        self.words = nn.Embedding(sizes.vocabulary_size + 1, sizes.embedding_dim)
        self.words.weight.requires_grad_(False)
        self.characters = nn.Embedding(sizes.characters + 1, sizes.character_dim)
        self.convolution = nn.Conv1d(sizes.character_dim, sizes.character_filters, self.width)
        D = sizes.character_filters + sizes.embedding_dim
        self.transforms = nn.ModuleList(nn.Linear(D, D) for _ in range(2))
        self.gates = nn.ModuleList(nn.Linear(D, D) for _ in range(2))
        self.contextual, self.end = Recurrent(nn.LSTM, D, d), Recurrent(nn.LSTM, 2 * d, d)
        self.modelling = nn.ModuleList([Recurrent(nn.LSTM, 8 * d, d), Recurrent(nn.LSTM, 2 * d, d)])
        self.w = nn.Parameter(torch.empty(3, 2 * d).uniform_(-0.1, 0.1))
        self.start_logit, self.end_logit = (nn.Linear(10 * d, 1, bias=False) for _ in range(2))

    def forward(self, words, characters, context, query):
        real = (characters > 0)[..., None]
        e = F.pad(self.drop(self.characters(characters) * real), (0, 0, 0, self.width - 1))
        c = (F.relu(self.convolution(e.transpose(1, 2))).transpose(1, 2) * real).amax(1)
        x = torch.cat([c, self.words(words)], -1)
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            t = torch.sigmoid(gate(x))
            x = t * F.relu(transform(x)) + (1 - t) * x
        t_mask, j_mask = context > 0, query > 0
        H, _ = self.contextual(self.drop(x[context]), t_mask)
        U, _ = self.contextual(self.drop(x[query]), j_mask)
        S = (
            (H @ self.w[0])[:, :, None]
            + (U @ self.w[1])[:, None]
            + (H * self.w[2]) @ U.transpose(1, 2)
        )
        S = S.masked_fill(~j_mask[:, None], LOWEST)
        U_tilde = S.softmax(-1) @ U
        b = S.amax(-1).masked_fill(~t_mask, LOWEST).softmax(-1)
        h_tilde = b[:, None] @ H
        G = torch.cat([H, U_tilde, H * U_tilde, H * h_tilde], -1)
        M, _ = self.modelling[0](self.drop(G), t_mask)
        M, _ = self.modelling[1](self.drop(M), t_mask)
        start = self.start_logit(self.drop(torch.cat([G, M], -1)))[..., 0]
        M2, _ = self.end(self.drop(M), t_mask)
        end = self.end_logit(self.drop(torch.cat([G, M2], -1)))[..., 0]
        return torch.stack([start, end], 1).masked_fill(~t_mask[:, None], LOWEST)


def span_loss(spans, logits):
    log_p = logits.log_softmax(-1)
    each = log_p.gather(2, spans.transpose(1, 2).clamp(min=0)).sum(1)
    return -each.masked_fill(spans[..., 0] < 0, LOWEST).logsumexp(-1).mean()


class Seq2Seq(nn.Module):
    """GRUs with Luong's dot-product attention, one layer each, as `models.seq2seq`."""

    def __init__(self, sizes):
        super().__init__()
        self.drop, H, D, V = (
            nn.Dropout(sizes.dropout),
            sizes.hidden,
            sizes.embedding_dim,
            sizes.vocabulary_size,
        )
        self.words = nn.Embedding(V + 2, D)
        self.encoder, self.decoder = Recurrent(nn.GRU, D, H // 2), nn.GRU(D, H, batch_first=True)
        self.readout, self.logits = nn.Linear(2 * H, H, bias=False), nn.Linear(H, V + 1)

    def encode(self, source):
        mask = source > 0
        memory, state = self.encoder(self.drop(self.words(source)), mask)
        return torch.cat([state[0], state[1]], -1)[None], memory, mask

    def decode(self, words, state, memory, mask):
        x, state = self.decoder(self.drop(self.words(words)), state)
        e = (x @ memory.transpose(1, 2)).masked_fill(~mask[:, None], LOWEST)
        return torch.tanh(self.readout(torch.cat([e.softmax(-1) @ memory, x], -1))), state

    def forward(self, source, target_in):
        x, _ = self.decode(target_in, *self.encode(source))
        return self.logits(self.drop(x))


def beam_search(model, source, K=5, length=30):
    """The `K` best replies to each source, without padding and unknown words, `(B, K, length)`."""
    state, *memory = (
        x.repeat_interleave(K, dim) for x, dim in zip(model.encode(source), (1, 0, 0), strict=True)
    )
    B, begin = len(source), model.words.num_embeddings - 1
    ids, word = torch.zeros(B, K, length, dtype=torch.long), torch.full((B, K), begin)
    score, done = torch.full((B, K), LOWEST), torch.zeros(B, K, dtype=torch.bool)
    score[:, 0] = 0.0
    for t in range(length):
        x, state = model.decode(word.reshape(-1, 1), state, *memory)
        log_p = model.logits(x[:, 0]).log_softmax(-1).reshape(B, K, -1)
        log_p[..., [0, UNKNOWN]] = LOWEST
        stays = torch.full_like(log_p, LOWEST)
        stays[..., 0] = score
        score, best = (
            torch.where(done[..., None], stays, score[..., None] + log_p).flatten(1).topk(K)
        )
        parent, word = best // log_p.shape[-1], best % log_p.shape[-1]
        ids, done = ids.gather(1, parent[..., None].expand_as(ids)), done.gather(1, parent)
        state = state[:, (parent + K * torch.arange(B)[:, None]).flatten()]
        ids[:, :, t] = word
        done |= word == EOS
        if done.all():
            break
    return ids


def word_loss(target, logits):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)


def make_compute(what, batches, network, sizes, rate, clip, ema):
    """A function that computes all batches once."""
    model = {"bidaf": BiDAF, "seq2seq": Seq2Seq}[network](types.SimpleNamespace(**sizes))
    loss_of = {"bidaf": span_loss, "seq2seq": word_loss}[network]
    parameters = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, rate, eps=1e-7)
    averages = [p.detach().clone() for p in parameters]

    def train():
        for *inputs, targets in batches:
            adam.zero_grad()
            loss_of(targets, model(*inputs)).backward()
            if clip:
                nn.utils.clip_grad_norm_(parameters, clip)
            adam.step()
            if ema:
                torch._foreach_lerp_(averages, [p.detach() for p in parameters], 1 - ema)

    @torch.inference_mode()
    def answer():
        for *inputs, _ in batches:
            model(*inputs) if network == "bidaf" else beam_search(model, inputs[0])

    model.train(what == "training")
    return train if what == "training" else answer


def main(what, arrays, settings):
    torch.manual_seed(1)
    settings = json.loads(settings)
    torch.set_num_threads(settings.pop("threads"))
    count = settings.pop("arrays")
    with np.load(arrays) as stored:
        every = [torch.from_numpy(array.astype("int64")) for array in stored.values()]
    batches = [every[i : i + count] for i in range(0, len(every), count)]
    compute = make_compute(what, batches, **settings)
    print(f"torch {torch.__version__}", flush=True)
    for _ in sys.stdin:
        cpu, started = time.process_time(), time.perf_counter()
        compute()
        found = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}
        found["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
