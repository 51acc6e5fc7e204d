"""What the server takes from strangers before any route sees it: how many connections, how slow, in which form."""
