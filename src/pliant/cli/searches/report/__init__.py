"""Reports of searches: charts as PNG, and a page that shows them."""
