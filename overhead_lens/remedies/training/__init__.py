"""Training steps: optimizers and data loaders."""
