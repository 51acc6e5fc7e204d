"""Files and folders that somebody else's program can write to: opened, listed, measured, packed and removed safely.

Whoever can write to a folder can put anything in any place of it at any moment: a link to a secret, a pipe that nobody
writes to, a second name of a file of somebody else, a petabyte of nothing, a folder in the place of a file. So nothing
here goes by the path of a file: a folder that only we can write to is opened, and from there on everything is reached
by descriptors, below it and nowhere else (`beneath`). What is opened is looked at before it is read (`opening`), and
what is read has bounds. An `UntrustedPath` is no path that anything else takes, so that the types refuse other reads.
"""
