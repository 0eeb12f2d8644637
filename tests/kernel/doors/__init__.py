"""An app with nothing but a state machine: what the kernel promises is tested on it."""
