"""Makes a tiny Llama with random weights and its tokenizer, for a real vLLM on a CPU.

Runs inside vLLM's own environment (it needs transformers and tokenizers), started by run_vllm.py:

    python random_llama.py DIRECTORY
"""

import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Enough for answers that are still under way when a slow machine has looked at ten of them.
_MAX_POSITIONS = 8192


def make(directory: Path) -> None:
    """Writes model and tokenizer; any text will do to train the tokenizer, so it is trained on this file."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([__file__], trainer)
    ends = {"bos_token": "<s>", "eos_token": "</s>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends)
    fast.chat_template = _TEMPLATE
    fast.save_pretrained(directory)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=_MAX_POSITIONS,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(directory)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
