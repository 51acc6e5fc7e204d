"""What the client packs and sends, and what it fetches and unpacks."""
