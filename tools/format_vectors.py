#!/usr/bin/env python3
"""Prints the test vectors of docs/formats/, computed without any of the C++ code.

The documents and the golden tests hold this output; a change of it is a change of the format.
With the repository's folder as argument it checks instead that both hold every vector.
"""
import hashlib
import hmac
import json
import pathlib
import struct
import sys

NAMESPACE = {
    "adapter_id": "none", "adapter_revision": "none", "attention_backend": "flash",
    "bytes_per_token": [4, 8], "chunk_tokens": 4, "cipher": "none", "codec": "none",
    "element_order": "[token,2,kv_head,head_dim]", "engine_block_tokens": 1,
    "format_version": 1, "hash_algorithm": "sha256-chain", "hash_seed": "none",
    "instruction_set": "any", "kv_dtype": "bfloat16", "kv_quantization": "none",
    "kv_scales": "none", "layers": 2, "model_architecture": "LlamaForCausalLM",
    "model_fingerprint": "sha256:00", "object_layout": "chunk",
    "position_encoding": "rope theta=10000", "unit_tokens": 2,
}


def canonical(spec):
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def u32(value):
    return struct.pack("<I", value)


def root(namespace, salt):
    return hmac.new(hashlib.sha256(salt).digest(), b"objectcache/1" + namespace,
                    hashlib.sha256).digest()


def unit_key(parent, tokens, extra=b""):
    return hashlib.sha256(parent + u32(len(tokens)) + b"".join(map(u32, tokens)) +
                          u32(len(extra)) + extra).digest()


def engine_key(namespace, salt, engine_hash):
    return hashlib.sha256(b"objectcache/1/engine" + namespace + hashlib.sha256(salt).digest() +
                          u32(len(engine_hash)) + engine_hash).digest()


def chunk_object(namespace, keys, parent, shard, created_ms):
    layers, units, unit_tokens = 2, 2, 2
    header_bytes = 4096
    slices = [bytes(range(0x10, 0x20)), bytes(range(0x40, 0x60))]
    header = bytearray(header_bytes)
    struct.pack_into("<8sIIIIII", header, 0, b"\x89OCKV\r\n\x1a", 1, header_bytes, layers, units,
                     unit_tokens, 0)
    header[32:64] = namespace
    header[64:96] = keys[-1]
    header[96:128] = parent
    struct.pack_into("<HHHHQQII", header, 128, *shard, header_bytes + 48, created_ms, 0, 0)
    at = 160
    for key in keys:
        header[at:at + 32] = key
        at += 32
    for data in slices:
        unit_bytes = len(data) // units
        for unit in range(units):
            piece = data[unit * unit_bytes:(unit + 1) * unit_bytes]
            struct.pack_into("<II", header, at, len(piece), crc32c(piece))
            at += 8
    struct.pack_into("<I", header, 156, crc32c(header))
    return bytes(header[:at]), bytes(header) + b"".join(slices)


def vectors():
    """Yields (label, value)."""
    text = canonical(NAMESPACE)
    name = hashlib.sha256(text).digest()
    yield "namespace.canonical", text.decode()
    yield "namespace.digest", name.hex()
    for salt in (b"", b"tenant-salt"):
        label = salt.decode() or "empty"
        head = root(name, salt)
        yield f"keys.{label}.root", head.hex()
        for i, tokens in enumerate(([1, 2], [3, 128000], [0xFFFFFFFF, 0])):
            head = unit_key(head, tokens)
            yield f"keys.{label}.unit{i}", head.hex()
    yield "keys.extra.unit0", unit_key(root(name, b""), [1, 2], b"image:0").hex()
    yield "keys.engine", engine_key(name, b"", bytes(range(32))).hex()
    keys = [unit_key(root(name, b""), [1, 2])]
    keys.append(unit_key(keys[0], [3, 128000]))
    used, whole = chunk_object(name, keys, bytes(32), (1, 2, 0, 1), 1700000000123)
    for at in range(0, len(used), 16):
        yield f"chunk.header.{at}", used[at:at + 16].hex()
    yield "chunk.object.sha256", hashlib.sha256(whole).hexdigest()


def missing(root_folder):
    """Yields a line for each vector that the documents or the golden tests lack."""
    for what, pattern in (("docs/formats", "*.md"), ("src/format", "*_test.cc")):
        files = sorted((root_folder / what).glob(pattern))
        text = "".join(path.read_text() for path in files)
        # Adjacent literals, and the spaces between the bytes of a dump, are only layout.
        for layout in (')"\n', 'R"(', " ", "\n"):
            text = text.replace(layout, "")
        for label, value in vectors():
            if value.replace(" ", "") not in text:
                yield f"{what}: {label} is not {value}"


def main():
    if len(sys.argv) > 1:
        lines = list(missing(pathlib.Path(sys.argv[1])))
        print("\n".join(lines) or "all vectors are there")
        sys.exit(1 if lines else 0)
    for label, value in vectors():
        print(label, value)


if __name__ == "__main__":
    main()
