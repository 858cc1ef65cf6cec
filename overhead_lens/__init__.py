"""Where does every microsecond of a PyTorch call go: a closed budget of real measurements."""

__version__ = "0.1.0"
