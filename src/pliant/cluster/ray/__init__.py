"""Machines that Ray brings: on every node of a Ray cluster an agent is started, and started again when it ends.

Theory of operation. Ray says which nodes there are and runs an actor on each; that is all it is asked for. The actor is
a launcher (`AgentLauncher`): it starts the agent that `pliant agent` starts, in a session of its own, so that neither
the actor's end nor its raylet's nor the head's is the agent's, and the next launcher finds it by its lock. From then on
the agent's own link to the server is all that counts: a machine is lost when that is silent, whatever Ray believes.

Ray itself is loaded by one process alone, a child of the server (`pliant.entry.ray`): Ray starts threads, handles
signals, ends the process whose raylet is gone, and unpickles what its actors answer. Only words pass between that
process and the server (`messages`), each checked. Its end costs nothing but that new nodes wait for the next one.

Why it is so: decision 0045.
"""
