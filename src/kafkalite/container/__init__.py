"""What the container image holds beside the broker: what the environment means to it, the scripts
that other images have and harnesses call, and the small programs behind them."""
