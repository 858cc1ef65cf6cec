"""Trains an autoencoder on random data with Lightning."""

import logging
import warnings

import lightning
import torch
from _options import read_options
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(lightning.LightningModule):
    """Two layers down, two layers up."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden, code = max(width // 2, 1), max(width // 8, 1)
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        """Mean squared error of what comes out."""
        (x,) = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(x)), x)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    """Fit and print what the weights sum to."""
    options = read_options(__doc__, steps=2_500, width=256)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(4096, options.width)), batch_size=64)
    model = Autoencoder(options.width)
    trainer = lightning.Trainer(
        max_steps=options.steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    print(f"weights sum to {sum(each.double().sum().item() for each in model.parameters()):.4f}")


if __name__ == "__main__":
    main()
