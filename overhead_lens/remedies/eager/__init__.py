"""What changes how eager operators run."""
