"""The web console as it is served: a page for every path, and what the page loads. Knows nothing of what it shows."""
