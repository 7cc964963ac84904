"""The official extensions of the protocol: their facts, their methods, and the schemas made from them."""
