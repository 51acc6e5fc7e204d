"""IBM's words as Pliant's, and back. Pure, but for plug-ins, which are run, and archives, which are packed."""
