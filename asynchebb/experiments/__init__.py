"""The paper's experiments: each a module that says what to run, what to measure and what to draw."""
