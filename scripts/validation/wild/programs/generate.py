"""Generates text with a tiny GPT-2 of transformers, one token at a time, batch 1."""

import torch
from _options import read_options
from transformers import GPT2Config, GPT2LMHeadModel

PROMPT, NEW = 8, 56


def prepared(width: int = 128) -> tuple[GPT2LMHeadModel, torch.Tensor]:
    """The model and a prompt."""
    torch.manual_seed(0)
    vocabulary = 8 * width
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=PROMPT + NEW,
        n_embd=width,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=None,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config).eval(), torch.randint(vocabulary, (1, PROMPT))


def sentence(model: GPT2LMHeadModel, prompt: torch.Tensor) -> torch.Tensor:
    """The prompt, continued."""
    output: torch.Tensor = model.generate(prompt, max_new_tokens=NEW, do_sample=False)
    return output


def main() -> None:
    """Generate sentences and print what their tokens sum to."""
    options = read_options(__doc__, steps=4_000, width=128)
    model, prompt = prepared(options.width)
    total = 0
    for _ in range(options.steps // NEW):
        total += int(sentence(model, prompt).sum())
    print(f"tokens sum to {total}")


if __name__ == "__main__":
    main()
