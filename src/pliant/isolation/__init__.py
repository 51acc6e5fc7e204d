"""Walls around processes that run people's code: users, mounts, Landlock, a filter, control groups. Linux only.

Standard library only, since it runs before anything of a person's is imported. Knows no job and no task.
"""
