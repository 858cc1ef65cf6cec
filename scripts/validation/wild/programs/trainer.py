"""Trains a tiny GPT-2 on random tokens with the Trainer of transformers."""

import tempfile

import torch
from _options import read_options
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class RandomTokens(Dataset[dict[str, torch.Tensor]]):
    """Sentences of random tokens."""

    def __init__(self, length: int, vocabulary: int) -> None:
        self.tokens = torch.randint(vocabulary, (512, length))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main() -> None:
    """Train and print the loss."""
    options = read_options(__doc__, steps=500, width=64, length=32)
    torch.manual_seed(0)
    vocabulary = 4 * options.width
    config = GPT2Config(
        vocab_size=vocabulary, n_positions=options.length, n_embd=options.width, n_layer=2, n_head=2, use_cache=False
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=options.steps,
            per_device_train_batch_size=8,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        dataset = RandomTokens(options.length, vocabulary)
        trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=dataset)
        loss = trainer.train().training_loss
    print(f"loss {loss:.4f}")


if __name__ == "__main__":
    main()
