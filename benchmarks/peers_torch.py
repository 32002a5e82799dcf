"""The network of `benchmarks.peers` in PyTorch.

    python benchmarks/peers_torch.py WHAT BATCHES.npz SETTINGS

That benchmark starts it; it needs nothing but `torch` and `numpy`. SETTINGS is JSON.

Written as one would write it in PyTorch: `nn.LSTM` on packed sequences, Adam with its `foreach`
default. It prints a line once it is ready. For each line that it then reads from standard input, it
computes all batches and prints a line.
"""

import json
import sys
import types

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LOWEST = -1e30


class Recurrent(nn.Module):
    """`nn.LSTM` in both directions, which reads no padding."""

    def __init__(self, inputs, units):
        super().__init__()
        self.lstm = nn.LSTM(inputs, units, batch_first=True, bidirectional=True)

    def forward(self, x, mask):
        lengths = mask.sum(1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed, _ = self.lstm(packed)
        y, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        return y


class BiDAF(nn.Module):
    """Seo et al. 2017; layer by layer as `models.bidaf`.

    Shape suffixes:  B batch   T context words   J query words   D encoded features (the paper's 2d)
    W distinct words of the batch   C characters of a word   E character features   X word features
    """

    def __init__(self, sizes):
        super().__init__()
        d = sizes.hidden
        D = 2 * d
        X = sizes.character_filters + sizes.embedding_dim
        self.width = sizes.character_width
        self.drop = nn.Dropout(sizes.dropout)
        self.words = nn.Embedding(sizes.vocabulary_size + 1, sizes.embedding_dim)
        self.words.weight.requires_grad_(False)
        self.characters = nn.Embedding(sizes.characters + 1, sizes.character_dim)
        self.convolution = nn.Conv1d(sizes.character_dim, sizes.character_filters, self.width)
        self.transforms = nn.ModuleList([nn.Linear(X, X), nn.Linear(X, X)])
        self.gates = nn.ModuleList([nn.Linear(X, X), nn.Linear(X, X)])
        self.contextual = Recurrent(X, d)
        self.end = Recurrent(D, d)
        self.modelling = nn.ModuleList([Recurrent(4 * D, d), Recurrent(D, d)])
        self.w = nn.Parameter(torch.empty(3, D).uniform_(-0.1, 0.1))
        self.start_logit = nn.Linear(5 * D, 1, bias=False)
        self.end_logit = nn.Linear(5 * D, 1, bias=False)

    def forward(self, words_W, characters_WC, context_BT, query_BJ):
        """Returns the logits `(B, 2, T)`; context and query are places in `words_W`."""
        words_WX = self.embed(words_W, characters_WC)
        t_mask = context_BT > 0
        j_mask = query_BJ > 0
        H_BTD = self.contextual(self.drop(words_WX[context_BT]), t_mask)
        U_BJD = self.contextual(self.drop(words_WX[query_BJ]), j_mask)
        G = self.attend(H_BTD, U_BJD, t_mask, j_mask)

        M = self.modelling[0](self.drop(G), t_mask)
        M = self.modelling[1](self.drop(M), t_mask)
        M2 = self.end(self.drop(M), t_mask)
        start_BT = self.start_logit(self.drop(torch.cat([G, M], -1)))[..., 0]
        end_BT = self.end_logit(self.drop(torch.cat([G, M2], -1)))[..., 0]
        return torch.stack([start_BT, end_BT], 1).masked_fill(~t_mask[:, None], LOWEST)

    def embed(self, words_W, characters_WC):
        """Embeds each distinct word once: characters, words, two highway layers."""
        is_real_WC1 = (characters_WC > 0)[..., None]
        characters_WCE = self.drop(self.characters(characters_WC) * is_real_WC1)

        # A window that starts at a word's last character ends in zeros.
        characters_WCE = F.pad(characters_WCE, (0, 0, 0, self.width - 1))
        # `Conv1d` takes features before places.
        windows_WEC = F.relu(self.convolution(characters_WCE.transpose(1, 2)))
        windows_WCE = windows_WEC.transpose(1, 2)
        largest_WE = (windows_WCE * is_real_WC1).amax(1)

        x_WX = torch.cat([largest_WE, self.words(words_W)], -1)
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            t_WX = torch.sigmoid(gate(x_WX))
            x_WX = t_WX * F.relu(transform(x_WX)) + (1 - t_WX) * x_WX
        return x_WX

    def attend(self, H_BTD, U_BJD, t_mask, j_mask):
        S_BTJ = (
            (H_BTD @ self.w[0])[:, :, None]
            + (U_BJD @ self.w[1])[:, None]
            + (H_BTD * self.w[2]) @ U_BJD.transpose(1, 2)
        )
        S_BTJ = S_BTJ.masked_fill(~j_mask[:, None], LOWEST)
        U_tilde_BTD = S_BTJ.softmax(-1) @ U_BJD
        b_BT = S_BTJ.amax(-1).masked_fill(~t_mask, LOWEST).softmax(-1)
        h_tilde_B1D = b_BT[:, None] @ H_BTD
        return torch.cat([H_BTD, U_tilde_BTD, H_BTD * U_tilde_BTD, H_BTD * h_tilde_B1D], -1)


def span_loss(spans_BA2, logits_B2T):
    """Negative log of the probability of all correct spans of a question, averaged.

    A span is the places of its first and last word; -1 is padding.
    """
    log_p_B2T = logits_B2T.log_softmax(-1)
    places_B2A = spans_BA2.transpose(1, 2).clamp(min=0)
    log_p_of_spans_BA = log_p_B2T.gather(2, places_B2A).sum(1)
    is_padding_BA = spans_BA2[..., 0] < 0
    return -log_p_of_spans_BA.masked_fill(is_padding_BA, LOWEST).logsumexp(-1).mean()


def make_compute(what, batches, sizes, rate, clip, ema):
    """Returns a function that computes all batches once."""
    model = BiDAF(types.SimpleNamespace(**sizes))
    parameters = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, rate, eps=1e-7)
    averages = [p.detach().clone() for p in parameters]

    def train():
        for *inputs, spans in batches:
            adam.zero_grad()
            span_loss(spans, model(*inputs)).backward()
            nn.utils.clip_grad_norm_(parameters, clip)
            adam.step()
            if ema:
                # average += (1 - ema) * (parameter - average)
                torch._foreach_lerp_(averages, [p.detach() for p in parameters], 1 - ema)

    @torch.inference_mode()
    def answer():
        for *inputs, _ in batches:
            model(*inputs)

    is_training = what == "training"
    model.train(is_training)
    return train if is_training else answer


def main(what, path, settings):
    torch.manual_seed(1)
    settings = json.loads(settings)
    torch.set_num_threads(settings.pop("threads"))
    per_batch = settings.pop("arrays_per_batch")
    with np.load(path) as stored:
        arrays = [torch.from_numpy(array.astype("int64")) for array in stored.values()]
    batches = []
    for start in range(0, len(arrays), per_batch):
        batches.append(arrays[start : start + per_batch])
    compute = make_compute(what, batches, **settings)
    print(f"torch {torch.__version__}", flush=True)
    for _ in sys.stdin:
        compute()
        print("computed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
