"""Algorithms of people's own: how they are installed, checked, kept, and what runs them."""
