"""Evidence on whether an implementation of speculative sampling follows the target's law."""
