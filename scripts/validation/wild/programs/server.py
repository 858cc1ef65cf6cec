"""Serves a model to six clients: each is a thread that puts requests into a queue, and one thread runs the model."""

import queue
import threading

import torch
from _options import read_options
from torch import nn

CLIENTS = 6

Request = tuple[torch.Tensor, "queue.Queue[torch.Tensor]"]


def serve(model: nn.Module, requests: "queue.Queue[Request | None]") -> None:
    """Answer requests until there are no more."""
    with torch.inference_mode():
        while (request := requests.get()) is not None:
            x, answers = request
            answers.put(model(x))


def request_all(requests: "queue.Queue[Request | None]", count: int, width: int, sums: list[float]) -> None:
    """Send requests one after the other, and add up the answers."""
    answers: queue.Queue[torch.Tensor] = queue.Queue()
    total = 0.0
    for number in range(count):
        requests.put((torch.full((16, width), number % 7 / 7), answers))
        total += answers.get().sum().item()
    sums.append(total)


def main() -> None:
    """Serve and print what the answers sum to."""
    options = read_options(__doc__, steps=18_000, width=256)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(options.width, options.width),
        nn.GELU(),
        nn.Linear(options.width, options.width),
        nn.GELU(),
        nn.Linear(options.width, 1),
    )
    requests: queue.Queue[Request | None] = queue.Queue()
    sums: list[float] = []
    server = threading.Thread(target=serve, args=(model, requests), name="server")
    each = options.steps // CLIENTS
    clients = [threading.Thread(target=request_all, args=(requests, each, options.width, sums)) for _ in range(CLIENTS)]
    for thread in (server, *clients):
        thread.start()
    for client in clients:
        client.join()
    requests.put(None)
    server.join()
    print(f"answers sum to {sum(sums):.2f}")


if __name__ == "__main__":
    main()
