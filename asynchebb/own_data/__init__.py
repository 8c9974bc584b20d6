"""Networks on a person's own data: loading them, learning from them, comparing with other methods."""
