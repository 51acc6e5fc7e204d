"""The use cases and the loop that carries out decisions; I/O only through the ports of core and the jobs' folders."""
