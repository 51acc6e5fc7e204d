"""One file per format that a data set is imported from, and how samples are dealt out."""
