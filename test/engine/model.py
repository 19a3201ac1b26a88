"""model.py FOLDER: a tiny Llama without weights (vLLM fills in random ones) and a BPE tokenizer of 2,000 entries.

The answers are gibberish. Queue, batches, KV cache and telemetry are vLLM's own, and that is what the test is about.
"""

import json
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "LICENSE"), errors="replace") as f:
    lines = f.readlines()

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(
    lines,
    trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<s>", "</s>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    ),
)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
fast.chat_template = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
fast.save_pretrained(folder)
config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "vocab_size": len(fast),
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
    "torch_dtype": "bfloat16",
    "initializer_range": 0.02,
}
with open(os.path.join(folder, "config.json"), "w") as f:
    json.dump(config, f, indent=1)
