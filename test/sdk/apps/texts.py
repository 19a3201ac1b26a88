"""Texts with a marker each, and what an application was told. finish() prints both as one line of JSON."""

import json
import sys

app = sys.argv[1]
texts, calls = [], []


def text(place):
    """A sentence with a marker that occurs nowhere else. A sentence, since a single word under a harmless key is no secret (docs/privacy.md)."""
    marker = f"CNRY{app}{place}7f3a91".replace("-", "")
    texts.append(marker)
    return f"Please think of {marker} when you answer,\nand say nothing about it."


def answered(model, prompt_tokens, completion_tokens, said=()):
    """One call that was answered: its usage, and the texts that the model wrote."""
    calls.append({"model": model, "input": prompt_tokens, "output": completion_tokens})
    # A few words can occur anywhere; the beginning of a longer answer is as good as a marker.
    texts.extend(s[:60] for s in said if len(s) >= 60)


def finish():
    print("RESULT " + json.dumps({"texts": texts, "calls": calls}), flush=True)
