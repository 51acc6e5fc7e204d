"""The tasks of one generation: how they meet, and how numbers and state go between them."""
